package openapi

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// serveV2 streams the one document of v2 group by group, because it may be larger than all else that the server holds.
func (h *Handler) serveV2(w http.ResponseWriter, r *http.Request, snap *catalog.Snapshot) {
	w.Header().Add("Vary", "Accept")
	form, contentType := negotiate(r, formsV2)
	if form == "" {
		h.options.WriteError(w, r, errNotAcceptable(formsV2))
		return
	}
	d := documentV2{h: h, groups: snap.Groups(), form: form}
	sum := sha512.New()
	for _, g := range d.groups {
		versions, err := h.hashes.of(g, h.options.Version)
		if err != nil {
			h.options.WriteError(w, r, err)
			return
		}
		hash := ""
		for _, gv := range g.Versions {
			hash += versions[gv.Name]
		}
		d.hashes = append(d.hashes, hash)
		fmt.Fprintf(sum, "%s %s\n", g.Name, hash)
	}
	h.hashes.forget(snap)
	w.Header().Set("Content-Type", contentType)
	if fresh(w, r, fmt.Sprintf("%X", sum.Sum(nil))) {
		return
	}
	w.Header().Add("Vary", "Accept-Encoding")
	gzipped := takesGzip(r)
	if gzipped {
		w.Header().Set("Content-Encoding", "gzip")
	}
	if r.Method == http.MethodHead {
		return
	}
	if err := d.write(w, gzipped); err != nil {
		// The status is sent. To break the connection is the one way left to say that the document is not complete.
		panic(http.ErrAbortHandler)
	}
}

// documentV2 is the v2 document of one request.
type documentV2 struct {
	h      *Handler
	form   string
	groups []*catalog.Group
	hashes []string // of the groups
}

func (d *documentV2) write(w io.Writer, gzipped bool) error {
	out := newPartsWriter(w, gzipped)
	write := d.writeJSON
	if d.form == formProtobuf {
		write = d.writeProtobuf
	}
	if err := write(out); err != nil {
		return err
	}
	return out.Close()
}

func (d *documentV2) writeJSON(w *partsWriter) error {
	if err := d.writeHead(w); err != nil {
		return err
	}
	general, definitions, parameters, err := d.h.sharedV2()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, `,"paths":{%s`, general); err != nil {
		return err
	}
	for _, g := range d.groups {
		paths, err := members(d.h.pathsV2(g))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, ",%s", paths); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(w, `},"definitions":{%s`, definitions); err != nil {
		return err
	}
	for i, g := range d.groups {
		packed, err := d.packed(i, func() ([]byte, error) {
			definitions, err := d.h.definitionsV2(d.groups, g)
			if err != nil || len(definitions) == 0 {
				return nil, err
			}
			out, err := members(definitions)
			return append([]byte(","), out...), err
		})
		if err != nil {
			return err
		}
		w.part(packed)
	}
	_, err = fmt.Fprintf(w, `},"parameters":{%s}}`, parameters)
	return err
}

func (d *documentV2) writeHead(w io.Writer) error {
	head, err := json.Marshal(info{"Kubernetes", d.h.options.Version})
	if err != nil {
		return err
	}
	security, err := json.Marshal(bearerToken)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, `{"swagger":"2.0","info":%s,"securityDefinitions":%s,"security":[{"BearerToken":[]}]`, head,
		security)
	return err
}

// writeProtobuf writes a document for each group, one after the other: a parser of protocol buffers merges them into
// one.
func (d *documentV2) writeProtobuf(w *partsWriter) error {
	shared, err := d.sharedProtobuf()
	if err != nil {
		return err
	}
	if _, err := w.Write(shared); err != nil {
		return err
	}
	for i, g := range d.groups {
		packed, err := d.packed(i, func() ([]byte, error) {
			definitions, err := d.h.definitionsV2(d.groups, g)
			if err != nil {
				return nil, err
			}
			return protobufV2(d.h.pathsV2(g), definitions)
		})
		if err != nil {
			return err
		}
		w.part(packed)
	}
	return nil
}

// sharedProtobuf encodes what does not depend on what is served.
func (d *documentV2) sharedProtobuf() ([]byte, error) {
	paths, definitions, parameters, err := d.h.sharedV2()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := d.writeHead(&b); err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, `,"paths":{%s},"definitions":{%s},"parameters":{%s}}`, paths, definitions, parameters)
	doc, err := openapi_v2.ParseDocument(b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("convert OpenAPI v2 to protobuf: %w", err)
	}
	return proto.Marshal(doc)
}

// packed returns the compressed part of group i, which build makes if it is not kept.
func (d *documentV2) packed(i int, build func() ([]byte, error)) (part, error) {
	k := key{"v2 " + d.groups[i].Name, d.form, d.hashes[i]}
	return d.h.packed(k, true, func(data []byte) []byte { return newPart(data) }, build)
}
