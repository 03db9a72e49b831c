package definition

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/bowsprit/bowsprit/internal/feature/compat"
)

// diffResult is the result of "bowsprit crd diff".
type diffResult struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Exempted int `json:"exempted"`
	// Definitions are the compared definitions, by name.
	Definitions []change `json:"definitions"`
	// Unused are the exemptions that match no finding.
	Unused []compat.Exemption `json:"unusedExemptions,omitempty"`
}

// change is a compared definition.
type change struct {
	Name     string   `json:"name"`
	File     string   `json:"file,omitempty"` // of the new state
	Findings []judged `json:"findings"`
}

// judged is a finding with its level.
type judged struct {
	compat.Finding
	Level compat.Level `json:"level"`
	// Exempted is the reason of the exemption.
	Exempted string `json:"exempted,omitempty"`
	Line     int    `json:"line,omitempty"`
}

// location is the file and line of a finding, or "" for a definition without a file.
func (c *change) location(f *judged) string {
	if c.File == "" || f.Line == 0 {
		return c.File
	}
	return c.File + ":" + strconv.Itoa(f.Line)
}

// text is the finding without its level: "v1: spec.port: the field is removed (existingFieldRemoval)".
func (f *judged) text() string {
	var parts []string
	for _, part := range []string{f.Version, f.Path, f.Text} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return fmt.Sprintf("%s (%s)", strings.Join(parts, ": "), f.Class)
}

// print prints a line for each finding.
func (r *diffResult) print(out io.Writer) error {
	for i := range r.Definitions {
		c := &r.Definitions[i]
		for j := range c.Findings {
			f := &c.Findings[j]
			level := string(f.Level)
			if f.Exempted != "" {
				level = "exempted, " + f.Exempted
			}
			if at := c.location(f); at != "" {
				fmt.Fprintf(out, "%s: ", at)
			}
			fmt.Fprintf(out, "%s: %s: %s\n", c.Name, level, f.text())
		}
	}
	for _, e := range r.Unused {
		name := strings.TrimSpace(string(e.Class) + " " + e.Path)
		fmt.Fprintf(out, "The exemption of %s (%s) matches no finding: remove it.\n", name, e.Reason)
	}
	_, err := fmt.Fprintf(out, "%d definitions, %d errors, %d warnings, %d exempted.\n", len(r.Definitions), r.Errors,
		r.Warnings, r.Exempted)
	return err
}

// escapeData and escapeProperty escape text in commands of GitHub Actions.
var (
	escapeData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// annotate prints the findings as commands of GitHub Actions, which shows them beside the changed lines.
func annotate(out io.Writer, r *diffResult) {
	for i := range r.Definitions {
		c := &r.Definitions[i]
		for j := range c.Findings {
			f := &c.Findings[j]
			if f.Exempted != "" {
				continue
			}
			where := ""
			if c.File != "" {
				where = fmt.Sprintf(" file=%s,line=%d", escapeProperty.Replace(c.File), max(1, f.Line))
			}
			fmt.Fprintf(out, "::%s%s::%s\n", f.Level, where, escapeData.Replace(c.Name+": "+f.text()))
		}
	}
}

// writeSARIF writes the findings to a file in SARIF 2.1.0, the format of code scanning.
func writeSARIF(file string, r *diffResult) error {
	type m = map[string]any
	results := []m{}
	for i := range r.Definitions {
		c := &r.Definitions[i]
		for j := range c.Findings {
			f := &c.Findings[j]
			one := m{
				"ruleId": f.Class, "level": f.Level, "message": m{"text": c.Name + ": " + f.text()},
			}
			if c.File != "" {
				one["locations"] = []m{{"physicalLocation": m{
					"artifactLocation": m{"uri": c.File}, "region": m{"startLine": max(1, f.Line)},
				}}}
			}
			if f.Exempted != "" {
				one["level"] = "none"
				one["suppressions"] = []m{{"kind": "external", "justification": f.Exempted}}
			}
			results = append(results, one)
		}
	}
	ids := []m{}
	for _, class := range compat.Classes() {
		ids = append(ids, m{"id": class})
	}
	text, err := json.MarshalIndent(m{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []m{{"tool": m{"driver": m{"name": "bowsprit crd diff", "rules": ids}}, "results": results}},
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("--sarif: %w", err)
	}
	return nil
}
