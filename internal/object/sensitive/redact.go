package sensitive

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Relation is where a path leads to, as seen from what is sensitive.
type Relation int

// The relations.
const (
	Apart  Relation = iota // to nothing that has to do with it
	Above                  // to what holds something sensitive
	Within                 // to something sensitive, or into it
)

// found is the end of a path.
type found struct {
	Relation
	at   *Fields // of the value that the path leads to
	head string  // the path up to where something sensitive begins
}

// maxPath and maxSplits bound the work for a path of names that may have dots in them. What is beyond is Within.
const (
	maxPath   = 4096
	maxSplits = 10000
)

// Find says where a path leads to, as field.Path and JSON paths of definitions are written: names after dots, indexes
// and other names in brackets, in quotes or without.
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

// from follows the path from its i-th byte on. A name may be read in several ways, of which the worst counts.
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

// named is Property, and for an asterisk what is sensitive of any field.
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

// notShown is said instead of what is wrong with a sensitive value.
const notShown = "is not valid; why is not shown, because the field is sensitive"

// evaluating stands in an error of a CEL rule between what went wrong, which may tell values, and the rule.
const evaluating = " evaluating rule: "

// Redact takes sensitive values out of errors about an object: values, and what a rule's evaluation or a format's check
// says of them. What only tells of the schema stays, and so does what static accepts: the messages of rules.
func (f *Fields) Redact(errs field.ErrorList, static func(detail string) bool) field.ErrorList {
	if f == nil {
		return errs
	}
	for i, e := range errs {
		found := f.find(strings.TrimPrefix(e.Field, "<nil>")) // the whole object is at no path
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

// detailOf returns what may be said of an error about a sensitive value.
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
