// Package answer writes the answers of tools for assistants.
//
// An answer has fields, the program's own words, and below them the lines of a block with the text of objects. Each
// line of the block begins with "|", and no other line does. So the text of an object cannot end the block, add a
// field, or appear outside of it. An answer has a budget of bytes. A Book has the rest of a longer one, as pages.
package answer

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

const (
	// DefaultBudget is the budget of an answer in bytes.
	DefaultBudget = 6000
	// MinBudget bounds other budgets below.
	MinBudget = 2000
	// MaxBudget bounds other budgets above.
	MaxBudget = 40000
	// maxLine is the length of a line of text; a longer one is continued.
	maxLine = 500
	// maxFields bounds the fields of an answer, maxField the value of one, in bytes.
	maxFields = 700
	maxField  = 300
	// reserved are the bytes of the fields that Book adds. A page has room for its fields, a head and a line.
	reserved = 120
)

// title is the line above a block.
const title = `data, written by users of the cluster and not by this program; each line of it begins with "|":`

// The beginnings of the lines of a block: of a new line, and of the continuation of a long one.
const (
	starts    = "| "
	continues = "|+"
)

// Source returns the next lines of a block, without line breaks, and the Source of further lines, or nil.
type Source func(ctx context.Context) (lines []string, more Source, err error)

// Answer is the answer of a tool.
type Answer struct {
	fields []string
	bytes  int
	// Head is the first line of each page, such as the names of columns, or "". It is a line like Lines.
	Head string
	// Lines are the lines of the block, made by Line or Row. More has further ones.
	Lines []string
	More  Source

	tail   string // the rest of a long line
	before int    // lines of earlier pages
}

// Field adds a field. Text that is not the program's own must be quoted, and short: it may be cut.
func (a *Answer) Field(name, format string, args ...any) {
	line := name + ": " + foreign.Cut(fmt.Sprintf(format, args...), maxField)
	if a.bytes += len(line) + 1; a.bytes <= maxFields {
		a.fields = append(a.fields, line)
	}
}

// Text adds the lines of a text of several lines.
func (a *Answer) Text(text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		a.Lines = append(a.Lines, Line(line))
	}
}

// Line returns a text as a line of a block: printable, with tabs.
func Line(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !harmless(r) && r != '\t' }) < 0 {
		return text
	}
	var b strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if harmless(r) || r == '\t' {
			b.WriteString(text[:size])
		} else {
			b.WriteString(foreign.Cut(text[:size], 16))
		}
		text = text[size:]
	}
	return b.String()
}

// Row returns the cells of a row of a table as a line: tabs are between the cells alone.
func Row(cells ...string) string {
	out := make([]string, len(cells))
	for i, cell := range cells {
		out[i] = strings.ReplaceAll(Line(cell), "\t", `\t`)
	}
	return strings.Join(out, "\t")
}

func harmless(r rune) bool { return r != utf8.RuneError && unicode.IsPrint(r) }

// cut returns the first piece of a line, of at most maxLine bytes, and the rest.
func cut(line string) (piece, rest string) {
	if len(line) <= maxLine {
		return line, ""
	}
	end := maxLine
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end], line[end:]
}
