package catalog

import "github.com/bowsprit/bowsprit/internal/object"

// At is object.Map.
func At(obj Object, path ...string) Object { return object.Map(obj, path...) }

// Text is object.String.
func Text(obj Object, path ...string) string { return object.String(obj, path...) }

// Objects is object.Objects.
func Objects(list any) []Object { return object.Objects(list) }
