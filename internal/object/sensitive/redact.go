package sensitive

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Relation is the position of a path relative to sensitive values.
type Relation int

// The relations.
const (
	Apart  Relation = iota // unrelated to any
	Above                  // to a value that contains one
	Within                 // to a sensitive value, or into it
)

// found is the end of a path.
type found struct {
	Relation
	at   *Fields // of the value at the path
	head string  // the path up to the start of the sensitive value
}

// maxPath and maxSplits bound the work for a path of names that may contain dots. A path beyond them is Within.
const (
	maxPath   = 4096
	maxSplits = 10000
)

// Find returns the relation of a path, written like field.Path and the JSON paths of definitions: names after dots, and
// indexes and other names in brackets, quoted or not.
func (f *Fields) Find(path string) Relation {
	if f != nil && strings.Contains(path, "..") { // at any depth
		return Within
	}
	return f.find(path).Relation
}

func (f *Fields) find(path string) found {
	if len(path) > maxPath {
		return found{Relation: Within, at: &Fields{whole: true}}
	}
	s := search{path: path}
	return s.from(f, 0)
}

type search struct {
	path   string
	splits int
}

// from follows the path from its i-th byte. A name may be parsed in several ways, of which the worst counts.
func (s *search) from(f *Fields, i int) (worst found) {
	s.splits++
	switch rest := s.path[i:]; {
	case f == nil:
		return found{}
	case f.whole || s.splits > maxSplits:
		return found{Within, &Fields{whole: true}, s.path[:i]}
	case rest == "":
		return found{Above, f, s.path}
	case rest[0] == '[':
		for end := 1; end < len(rest); end++ {
			if rest[end] == ']' {
				name := strings.Trim(rest[1:end], `'"`)
				worst = worst.or(s.from(f.named(name).Union(f.items), i+end+1))
			}
		}
		return worst
	case rest[0] == '.':
		i++
	}
	for end := i + 1; end <= len(s.path); end++ {
		if end < len(s.path) && s.path[end] != '.' && s.path[end] != '[' {
			continue
		}
		if below := f.named(s.path[i:end]); below != nil {
			worst = worst.or(s.from(below, end))
		}
	}
	return worst
}

// named is Property, and for an asterisk the union over all fields.
func (f *Fields) named(name string) *Fields {
	below := f.Property(name)
	if name != "*" {
		return below
	}
	for _, one := range f.properties {
		below = below.Union(one)
	}
	return below
}

func (a found) or(b found) found {
	if b.Relation > a.Relation {
		return b
	}
	return a
}

// notShown replaces the error of a sensitive value.
const notShown = "is not valid; the reason is hidden, because the field is sensitive"

// evaluating separates, in the error of a CEL rule, the failure, which may contain values, from the rule.
const evaluating = " evaluating rule: "

// Redact removes sensitive values from errors about an object: values, and the output of a rule's evaluation or a
// format check. It keeps texts that depend only on the schema, and texts that static accepts: the messages of rules.
func (f *Fields) Redact(errs field.ErrorList, static func(detail string) bool) field.ErrorList {
	if f == nil {
		return errs
	}
	for i, e := range errs {
		found := f.find(strings.TrimPrefix(e.Field, "<nil>")) // the whole object has no path
		if found.Relation == Apart {
			continue
		}
		out := *e
		if found.Relation == Within {
			out.Field = found.head
			if _, none := e.BadValue.(field.OmitValueType); !none && e.BadValue != nil {
				out.BadValue = Omitted
			}
			if e.Detail != "" && !static(e.Detail) {
				out.Detail = detailOf(e, found.head)
			}
		} else {
			switch e.BadValue.(type) {
			case map[string]any, []any:
				out.BadValue = found.at.Mask(e.BadValue)
			}
			if at := strings.LastIndex(e.Detail, evaluating); at >= 0 {
				out.Detail = "error" + e.Detail[at:]
			}
		}
		errs[i] = &out
	}
	return errs
}

// detailOf returns the harmless part of an error about a sensitive value.
func detailOf(e *field.Error, head string) string {
	switch e.Type {
	case field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeNotSupported:
		return e.Detail
	}
	if at := strings.LastIndex(e.Detail, evaluating); at >= 0 {
		return "error" + e.Detail[at:]
	}
	problem, ok := strings.CutPrefix(e.Detail, e.Field+" in body ")
	switch {
	case ok && strings.HasPrefix(problem, "should "):
		return head + " in body " + problem
	case ok && strings.HasPrefix(problem, "must be of type "):
		problem, _, _ = strings.Cut(problem, ":") // the value, of strings with a format
		return head + " in body " + problem
	}
	return notShown
}
