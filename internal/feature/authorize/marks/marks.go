// Package marks warns authors of CustomResourceDefinitions with sensitive fields about two wrong expectations: that an
// omitted keyword is removed, and that values are encrypted at rest without an encryption configuration.
package marks

import (
	"context"
	"fmt"
	"strings"

	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Part adds the warnings; it rejects nothing.
func Part() part.Part {
	return part.Part{Name: "sensitive fields", Handlers: func(h *part.Host) part.Handlers {
		return part.Handlers{Guards: map[string]verb.Guard{
			"customresourcedefinitions.apiextensions.k8s.io": func(
				ctx context.Context, c *verb.Call, obj, old object.Object,
			) error {
				if c.Subresource == "" && c.Version == c.Resource.Storage {
					for _, text := range warnings(obj, old, h.Encrypts) {
						request.Warn(ctx, text)
					}
				}
				return nil
			},
		}}
	}}
}

// warnings returns the warnings for a definition that replaces old, which may be nil: that an omitted keyword stays,
// and that its objects are not encrypted.
func warnings(obj, old object.Object, encrypts func(prefix string) bool) (out []string) {
	was := old != nil && crd.MentionsSensitive(old)
	if was {
		for _, at := range crd.KeepSensitive(codec.CloneObject(obj), old) {
			out = append(out, fmt.Sprintf("%s: %s stays; set it to false to show the values to all users with permission to read the objects",
				at, sensitive.Keyword))
		}
		return out
	}
	if !crd.MentionsSensitive(obj) {
		return nil
	}
	group, plural := object.String(obj, "spec", "group"), object.String(obj, "spec", "names", "plural")
	if encrypts(strings.Join([]string{group, plural}, "/")) || encrypts("secrets") {
		return nil
	}
	return []string{"fields are marked with " + sensitive.Keyword +
		", but the server does not encrypt objects of this definition, nor secrets, at rest: see --encryption-provider-config"}
}
