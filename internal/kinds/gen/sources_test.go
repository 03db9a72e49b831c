package main

import (
	"go/parser"
	"testing"
)

// TestStructOf checks that a type declared as another one has its own schema, with the fields of the other.
func TestStructOf(t *testing.T) {
	t.Parallel()
	s := newSources()
	s.read["example.com/a"], s.read["example.com/b"] = true, true
	for path, text := range map[string]string{
		"example.com/a": `package a
			import "example.com/b"
			type Same b.Far
			type Alias = b.Far
			type Text string
			type List []b.Far
			type Odd func()`,
		"example.com/b": `package b
			type Far Near
			type Near struct{ X int }`,
	} {
		file, err := parser.ParseFile(s.files, path+".go", text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s.readFile(path, file)
	}
	for name, in := range map[string]string{"Same": "b", "Alias": "b", "Text": "", "List": "", "Odd": ""} {
		d, err := s.lookup(typeName{"example.com/a", name})
		if err != nil {
			t.Fatal(err)
		}
		st, found, ok := s.structOf(d)
		if ok != (in != "") {
			t.Errorf("%s is a struct: %v", name, ok)
			continue
		}
		if ok && (found.path != "example.com/"+in || len(st.Fields.List) != 1) {
			t.Errorf("%s has the fields of %s.%s", name, found.path, found.spec.Name)
		}
	}
}
