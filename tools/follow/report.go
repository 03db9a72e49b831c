package main

import (
	"fmt"
	"strings"
)

// maxValue is the maximum length of a value in the report.
const maxValue = 100

// markdown returns the report with at most rows rows for each subject.
func (r report) markdown(from, to string, rows int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Kubernetes %s to %s\n\n", from, to)
	b.WriteString("| subject | items | new | gone | changed | without a file of ours |\n|---|---:|---:|---:|---:|---:|\n")
	for _, one := range r {
		counts, homeless := map[string]int{}, 0
		for _, c := range one.changes {
			counts[c.how]++
			if len(c.ours) == 0 {
				homeless++
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", one.title, one.total, counts["new"], counts["gone"],
			counts["changed"], homeless)
	}
	for _, one := range r {
		if len(one.changes) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| | name | value | our files |\n|---|---|---|---|\n", one.title)
		for _, c := range one.changes[:min(rows, len(one.changes))] {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.how, cell(c.name), one.value(c), places(c))
		}
		if more := len(one.changes) - rows; more > 0 {
			fmt.Fprintf(&b, "\n%d more: use -rows.\n", more)
		}
	}
	return b.String()
}

func (r result) value(c change) string {
	switch {
	case r.hidden:
		return ""
	case c.how == "changed":
		return cell(c.was) + " → " + cell(c.is)
	}
	return cell(c.was + c.is)
}

// places returns our files of a change.
func places(c change) string {
	text := strings.Join(c.ours, ", ")
	if c.everywhere > 0 {
		text += fmt.Sprintf(" and %d more", c.everywhere)
	}
	return text
}

// cell returns a text for a cell of a table.
func cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxValue {
		text = string(runes[:maxValue]) + "…"
	}
	return strings.ReplaceAll(text, "|", "\\|")
}
