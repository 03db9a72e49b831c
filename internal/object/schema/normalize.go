package schema

import "k8s.io/apimachinery/pkg/runtime"

// Normalize is NormalizeRequest for objects with well-formed embedded metadata. Malformed metadata stays for Validate
// to refuse.
func (s *Schema) Normalize(obj map[string]any) (unknown []string) {
	unknown, _ = s.NormalizeRequest(obj)
	return unknown
}

// NormalizeRequest normalizes a request's object in place: it drops unknown fields and disallowed nulls, converts the
// metadata of embedded resources to ObjectMeta, and sets defaults. The root's apiVersion, kind and metadata are the
// caller's task.
//
// unknown lists the paths of dropped fields in the format of Kubernetes' strict-decoding errors ("spec.foo",
// "spec.items[0].bar"): first fields unknown to the schema, then fields unknown to ObjectMeta, each sorted. err reports
// malformed metadata of an embedded resource; the request is then invalid, and obj partly normalized.
func (s *Schema) NormalizeRequest(obj map[string]any) (unknown []string, err error) {
	z := normalizer{prune: !s.preserve, nulls: !s.preserve, coerce: true, fill: true}
	z.run(s.root, obj)
	return append(z.unknown, z.unknownMeta...), z.err
}

// NormalizeStored normalizes a stored object in place, like NormalizeRequest, but drops malformed metadata of embedded
// resources.
func (s *Schema) NormalizeStored(obj map[string]any) {
	z := normalizer{prune: !s.preserve, nulls: !s.preserve, coerce: true, salvage: true, fill: true}
	z.run(s.root, obj)
}

// NormalizeConverted brings an object that a conversion made into shape, in place: as NormalizeRequest does, but no
// defaults are filled in.
func (s *Schema) NormalizeConverted(obj map[string]any) error {
	z := normalizer{prune: !s.preserve, nulls: !s.preserve, coerce: true}
	z.run(s.root, obj)
	return z.err
}

// NormalizeApplied normalizes the result of a server-side apply in place: it only sets defaults. A null in it was
// applied explicitly; if it is not allowed, validation reports it.
func (s *Schema) NormalizeApplied(obj map[string]any) {
	z := normalizer{fill: true}
	z.object(s.root, obj, true, false)
}

// PrunesApplied reports whether a read may show less than NormalizeApplied leaves: structured-merge-diff accepts any
// fields in objects without declared fields, below objects that preserve unknown fields, and in metadata of embedded
// resources.
func (s *Schema) PrunesApplied() bool {
	return !s.preserve && s.root.flags.has(looseBelow|metaBelow)
}

// normalizer runs Kubernetes' four steps (prune, drop nulls, coerce embedded metadata, set defaults) in one pass. A
// step depends only on a value's own subtree and schema, so the order between siblings does not matter. The exception
// is the metadata of a resource, which is not pruned and is replaced as a whole; see meta.
type normalizer struct {
	prune, nulls, coerce, fill bool
	salvage                    bool // drop malformed metadata
	root                       bool // coerce the root's metadata, too

	findings []finding // paths are relative to the current value, see under

	// The result, from findings.
	unknown, unknownMeta []string
	err                  error
}

// run normalizes obj, a whole object.
func (z *normalizer) run(n *Node, obj map[string]any) {
	z.object(n, obj, true, false)
	z.finish()
}

// value normalizes v, which need not be a whole object, for the checks of defaults.
func (z *normalizer) value(n *Node, v any, keep bool) {
	z.below(n, v, keep)
	z.finish()
}

func (z *normalizer) below(n *Node, v any, keep bool) {
	switch v := v.(type) {
	case map[string]any:
		z.object(n, v, false, keep)
	case []any:
		z.list(n, v, keep)
	}
}

// object normalizes m. keep preserves unknown fields even if n does not: n describes the elements of a list that
// preserves unknown fields.
func (z *normalizer) object(n *Node, m map[string]any, root, keep bool) {
	resource := root || n.Embedded
	drop := z.prune && !keep && !n.PreserveUnknown
	for key, v := range m {
		if resource && isMeta(key) {
			continue
		}
		child, known := n.Properties[key]
		if !known {
			if !n.flags.has(hasAdditional) {
				if drop {
					z.find(finding{kind: unknownField}, key)
					delete(m, key)
				}
				continue
			}
			child = n.AdditionalProperties
		}
		switch v.(type) {
		case map[string]any, []any:
			mark := len(z.findings)
			if child != nil {
				z.below(child, v, false)
			} else if z.prune {
				z.pruneAll(v)
			}
			z.under(mark, step{key: key, additional: !known})
		case nil:
			z.null(child, m, key)
		}
	}
	if resource {
		z.meta(n, m, n.Embedded && z.coerce || root && z.root)
	}
	if z.fill {
		fillMissing(n, m)
	}
}

// null handles a null in m[key]: it is dropped, replaced by the default, or kept.
func (z *normalizer) null(n *Node, m map[string]any, key string) {
	switch {
	case n == nil || n.Nullable:
	case n.Default != nil:
		if z.fill {
			m[key] = runtime.DeepCopyJSONValue(n.expanded)
		}
	case z.nulls:
		delete(m, key)
	}
}

func (z *normalizer) list(n *Node, list []any, keep bool) {
	keep = keep || n.PreserveUnknown
	if n.Items == nil {
		if z.prune && !keep {
			for i, v := range list {
				mark := len(z.findings)
				z.pruneAll(v)
				z.under(mark, step{index: i, list: true})
			}
		}
		return
	}
	for i, v := range list {
		switch v.(type) {
		case map[string]any, []any:
			mark := len(z.findings)
			z.below(n.Items, v, keep)
			z.under(mark, step{index: i, list: true})
		case nil:
			if z.fill && !n.Items.Nullable && n.Items.Default != nil {
				list[i] = runtime.DeepCopyJSONValue(n.Items.expanded)
			}
		}
	}
}

// pruneAll empties every object in v: no schema describes it.
func (z *normalizer) pruneAll(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			z.find(finding{kind: unknownField}, key)
			delete(v, key)
		}
	case []any:
		for i, e := range v {
			mark := len(z.findings)
			z.pruneAll(e)
			z.under(mark, step{index: i, list: true})
		}
	}
}

// meta normalizes the apiVersion, kind and metadata of a resource, step by step: they are never pruned, and coerce
// replaces the metadata as a whole.
func (z *normalizer) meta(n *Node, m map[string]any, coerce bool) {
	for _, key := range [...]string{"apiVersion", "kind", "metadata"} {
		v, ok := m[key]
		if !ok {
			continue
		}
		child, known := n.Properties[key]
		if !known {
			child = n.AdditionalProperties
		}
		if child != nil && z.nulls {
			if v == nil && !child.Nullable && child.Default == nil {
				delete(m, key)
				continue
			}
			if child.flags.has(boundsChildren) || child.Items != nil {
				(&normalizer{nulls: true}).below(child, v, false)
			}
		}
		if coerce {
			z.coerceMeta(m, key, v)
		}
		if child != nil && z.coerce && child.flags.has(metaBelow) {
			mark := len(z.findings)
			z.coerceBelow(child, v)
			z.under(mark, step{key: key, additional: !known})
		}
		if v, ok := m[key]; ok && child != nil && z.fill {
			fillBelow(child, v)
			if v == nil {
				z.null(child, m, key)
			}
		}
	}
}

// coerceBelow only coerces the metadata of the resources in v.
func (z *normalizer) coerceBelow(n *Node, v any) {
	c := normalizer{coerce: true, salvage: z.salvage}
	c.below(n, v, false)
	z.findings = append(z.findings, c.findings...)
}

// coerceMeta converts m[key], which is v, to a string or ObjectMeta.
func (z *normalizer) coerceMeta(m map[string]any, key string, v any) {
	if key != "metadata" {
		if _, ok := v.(string); ok {
			return
		}
		if z.salvage {
			delete(m, key)
		} else {
			z.find(finding{kind: malformed, value: v, problem: "must be a string"}, key)
		}
		return
	}
	unknown, err := coerceMetadata(m, z.salvage)
	if err != nil {
		z.find(finding{kind: malformed, value: v, problem: err.Error()}, key)
	}
	for _, u := range unknown {
		z.find(finding{kind: unknownMetaField}, key+"."+u)
	}
}
