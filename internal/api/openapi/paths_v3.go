package openapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// Paths are encoded for v3 without reflection. They are nearly all of a small kind's document, and most of their bytes
// are parameters common to all kinds, encoded once (models.encoded). The output equals encoding/json's for pathV3:
// TestAppendPath compares them byte for byte.

// appendV3 appends the JSON of the path.
func (at path) appendV3(dst []byte, m *models) []byte {
	if cap(dst) == 0 {
		dst = make([]byte, 0, 1<<14)
	}
	operations := slices.Clone(at.operations)
	slices.SortFunc(operations, func(a, b operation) int { return strings.Compare(a.method, b.method) })
	w := memberWriter{dst: append(dst, '{')}
	parameters := func() {
		if len(at.parameters) > 0 {
			w.parameters(at.parameters, m)
		}
	}
	for i := range operations {
		op := &operations[i]
		if op.method > "parameters" && (i == 0 || operations[i-1].method < "parameters") {
			parameters()
		}
		w.key(op.method)
		w.dst = op.appendV3(w.dst, m)
	}
	if len(operations) == 0 || operations[len(operations)-1].method < "parameters" {
		parameters()
	}
	return append(w.dst, '}')
}

func (op *operation) appendV3(dst []byte, m *models) []byte {
	w := memberWriter{dst: append(dst, '{')}
	w.key("tags")
	w.dst = append(appendText(append(w.dst, '['), op.tag), ']')
	w.markup("description", op.description)
	w.markup("operationId", op.id)
	if len(op.parameters) > 0 {
		w.parameters(op.parameters, m)
	}
	if op.body != "" {
		w.key("requestBody")
		body := memberWriter{dst: append(w.dst, '{')}
		body.content(op.body, op.consumes)
		body.flag("required", !op.optional)
		w.dst = append(body.dst, '}')
	}
	w.key("responses")
	w.dst = op.appendResponses(w.dst)
	if op.action != "" {
		w.markup("x-kubernetes-action", op.action)
		w.key("x-kubernetes-group-version-kind")
		kind := memberWriter{dst: append(w.dst, '{')}
		kind.markup("group", op.kind.Group)
		kind.markup("version", op.kind.Version)
		kind.markup("kind", op.kind.Kind)
		w.dst = append(kind.dst, '}')
	}
	return append(w.dst, '}')
}

func (op *operation) appendResponses(dst []byte) []byte {
	codes := append([]int{401}, op.codes...) // three digits each: numeric and textual order agree
	slices.Sort(codes)
	w := memberWriter{dst: append(dst, '{')}
	for _, code := range codes {
		w.key(strconv.Itoa(code))
		one := memberWriter{dst: append(w.dst, '{')}
		one.markup("description", codeText(code))
		if code != 401 && len(op.produces) > 0 {
			one.content(op.answer, op.produces)
		}
		w.dst = append(one.dst, '}')
	}
	return append(w.dst, '}')
}

// content writes the content of a body, in each media type.
func (w *memberWriter) content(definition string, types []string) {
	w.key("content")
	types = slices.Sorted(slices.Values(types))
	inner := memberWriter{dst: append(w.dst, '{')}
	for _, t := range slices.Compact(types) {
		inner.key(t)
		if definition == "" {
			inner.dst = append(inner.dst, `{"schema":{"type":"string"}}`...)
			continue
		}
		inner.dst = appendText(append(inner.dst, `{"schema":{"$ref":`...), refV3+definition)
		inner.dst = append(inner.dst, "}}"...)
	}
	w.dst = append(inner.dst, '}')
}

func (w *memberWriter) parameters(all []parameter, m *models) {
	w.key("parameters")
	for i, p := range all {
		w.dst = append(w.dst, "[,"[min(i, 1)])
		if known := m.encoded[p]; known != nil {
			w.dst = append(w.dst, known...)
		} else {
			w.dst = p.appendV3(w.dst)
		}
	}
	w.dst = append(w.dst, ']')
}

func (p parameter) appendV3(dst []byte) []byte {
	w := memberWriter{dst: append(dst, '{')}
	w.markup("name", p.Name)
	if p.inPath() {
		w.markup("in", "path")
	} else {
		w.markup("in", "query")
	}
	if p.Description != "" {
		w.markup("description", p.Description)
	}
	w.flag("required", p.inPath())
	w.key("schema")
	inner := memberWriter{dst: append(w.dst, '{')}
	if p.Type != "" {
		inner.markup("type", p.Type)
	}
	inner.flag("uniqueItems", true)
	return append(inner.dst, "}}"...)
}

// markup writes a text like encoding/json, which escapes HTML markup.
func (w *memberWriter) markup(name, value string) {
	w.key(name)
	w.dst = appendText(w.dst, value)
}

func appendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c == '<' || c == '>' || c == '&' || c >= utf8.RuneSelf {
			raw, _ := json.Marshal(s) // a string cannot fail
			return append(dst, raw...)
		}
	}
	return codec.AppendString(dst, s)
}

// encodeParameters encodes the parameters that models have.
func (m *models) encodeParameters() {
	m.encoded = map[parameter][]byte{}
	add := func(all []parameter) {
		for _, p := range all {
			m.encoded[p] = p.appendV3(nil)
		}
	}
	for _, all := range m.Parameters {
		add(all)
	}
	for _, all := range m.Options {
		add(all)
	}
	add(m.Common)
}
