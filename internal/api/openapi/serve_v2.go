package openapi

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// serveV2 streams the single v2 document group by group, because it may be larger than everything else in memory.
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
	for _, doc := range remotesV2(d.groups) {
		d.remotes = append(d.remotes, doc)
		d.remoteHash += doc.Hash
		fmt.Fprintf(sum, "%s\n", doc.Hash)
	}
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
		// The status has been sent. Breaking the connection is the only way to report an incomplete document.
		panic(http.ErrAbortHandler)
	}
}

// documentV2 is the v2 document of one request.
type documentV2 struct {
	h      *Handler
	form   string
	groups []*catalog.Group
	hashes []string // of the groups
	// remotes are the documents of other servers, and remoteHash identifies all of them.
	remotes    []catalog.Document
	remoteHash string
	// others is the joined content of remotes, nil until it is needed.
	others *remoteV2
}

// join returns the joined content of remotes. h.building[0] is held.
func (d *documentV2) join() (*remoteV2, error) {
	if d.others != nil {
		return d.others, nil
	}
	homes, err := d.h.homesV2(d.groups)
	if err != nil {
		return nil, err
	}
	_, _, parameters, err := d.h.sharedV2()
	if err != nil {
		return nil, err
	}
	shared := map[string]json.RawMessage{}
	if err := json.Unmarshal(slices.Concat([]byte("{"), parameters, []byte("}")), &shared); err != nil {
		return nil, err
	}
	d.others, err = joinV2(d.remotes, func(name string) bool { return homes[name] != "" || shared[name] != nil })
	return d.others, err
}

// writeOthers writes other servers' part in one place, produced by encode. It is cached as long as their documents are
// unchanged.
func (d *documentV2) writeOthers(w *partsWriter, position string, encode func(*remoteV2) ([]byte, error)) error {
	if len(d.remotes) == 0 {
		return nil
	}
	k := key{"v2 *" + position, d.form, d.remoteHash}
	packed, err := d.h.packed(k, true, func(data []byte) []byte { return newPart(data) }, func() ([]byte, error) {
		others, err := d.join()
		if err != nil {
			return nil, err
		}
		return encode(others)
	})
	if err == nil {
		w.part(packed)
	}
	return err
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
		if len(paths) == 0 {
			continue // other servers serve all of it
		}
		if _, err := fmt.Fprintf(w, ",%s", paths); err != nil {
			return err
		}
	}
	err = d.writeOthers(w, "paths", func(o *remoteV2) ([]byte, error) { return moreMembers(o.Paths) })
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, `},"definitions":{%s`, definitions); err != nil {
		return err
	}
	err = d.writeOthers(w, "definitions", func(o *remoteV2) ([]byte, error) { return moreMembers(o.Definitions) })
	if err != nil {
		return err
	}
	for i, g := range d.groups {
		packed, err := d.packed(i, func() ([]byte, error) {
			schemas, err := d.h.definitionsV2(d.groups, g)
			if err != nil || len(schemas) == 0 {
				return nil, err
			}
			out, err := encodeDefinitions(schemas)
			return append([]byte(","), out...), err
		})
		if err != nil {
			return err
		}
		w.part(packed)
	}
	if _, err = fmt.Fprintf(w, `},"parameters":{%s`, parameters); err != nil {
		return err
	}
	err = d.writeOthers(w, "parameters", func(o *remoteV2) ([]byte, error) { return moreMembers(o.Parameters) })
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "}}")
	return err
}

// moreMembers encodes members that follow others of an object.
func moreMembers(more map[string]json.RawMessage) ([]byte, error) {
	if len(more) == 0 {
		return nil, nil
	}
	text, err := members(more)
	return append([]byte(","), text...), err
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

// writeProtobuf writes a document for each group, one after the other: a parser of protocol buffers merges them.
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
	return d.writeOthers(w, "", (*remoteV2).protobuf)
}

// sharedProtobuf encodes the parts that do not depend on the catalog.
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

// packed returns the compressed part of group i, built by build unless it is cached.
func (d *documentV2) packed(i int, build func() ([]byte, error)) (part, error) {
	k := key{"v2 " + d.groups[i].Name, d.form, d.hashes[i]}
	return d.h.packed(k, true, func(data []byte) []byte { return newPart(data) }, build)
}
