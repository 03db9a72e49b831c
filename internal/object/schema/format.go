package schema

import "github.com/bowsprit/bowsprit/internal/object/schema/format"

// checkedFormat is a check on strings.
type checkedFormat struct {
	name  string // as in the schema
	check func(string) bool
}

// knownFormat returns n.Format if kube checks it for n's type, "" if it ignores it.
func (n *Node) knownFormat() string {
	if n.anyFormat {
		return n.Format
	}
	known := false
	switch n.types {
	case 0, kindString, kindString | kindInteger, kindUnknown:
		known = format.Check(n.Format) != nil
	case kindInteger:
		known = n.Format == "int32" || n.Format == "int64"
	case kindNumber:
		known = n.Format == "float" || n.Format == "double"
	}
	if !known {
		return ""
	}
	return n.Format
}

// stringFormat returns the check of a known format, nil for numeric ones.
func stringFormat(name string) *checkedFormat {
	if check := format.Check(name); check != nil {
		return &checkedFormat{name, check}
	}
	return nil
}
