package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// serveIndex lists the v3 documents. Each URL bears the document's hash, so that clients may keep the document for
// ever.
func (h *Handler) serveIndex(w http.ResponseWriter, r *http.Request, snap *catalog.Snapshot) {
	type item struct {
		URL string `json:"serverRelativeURL"`
	}
	index := struct {
		Paths map[string]item `json:"paths"`
	}{map[string]item{}}
	for _, g := range snap.Groups() {
		versions, err := h.hashes.of(g, h.options.Version)
		if err != nil {
			h.options.WriteError(w, r, err)
			return
		}
		for _, gv := range g.Versions {
			if versions[gv.Name] == "" {
				continue
			}
			path := indexPath(g, gv)
			index.Paths[path] = item{relativeURL(path, versions[gv.Name])}
		}
	}
	h.hashes.forget(snap)
	for name := range generalDocuments(snap) {
		index.Paths[name] = item{relativeURL(name, h.generalHash(name))}
	}
	body, err := json.Marshal(index)
	if err != nil {
		h.options.WriteError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if fresh(w, r, fmt.Sprintf("%X", sha512.Sum512(body))) {
		return
	}
	writePlain(w, r, body)
}

func relativeURL(path, hash string) string {
	return (&url.URL{Path: "/openapi/v3/" + path, RawQuery: url.Values{"hash": {hash}}.Encode()}).String()
}

// serveV3 serves one document. With ?hash= of that document the response may be cached for ever; another hash redirects
// to the current one.
func (h *Handler) serveV3(w http.ResponseWriter, r *http.Request, snap *catalog.Snapshot, path string) {
	hash, build, err := h.document(snap, path)
	if err != nil {
		h.options.WriteError(w, r, err)
		return
	}
	if build == nil {
		h.options.WriteError(w, r, generic(http.StatusNotFound, r))
		return
	}
	w.Header().Add("Vary", "Accept")
	form, contentType := negotiate(r, formsV3)
	if form == "" {
		h.options.WriteError(w, r, errNotAcceptable(formsV3))
		return
	}
	if wanted := r.URL.Query().Get("hash"); wanted != "" {
		if wanted != hash {
			http.Redirect(w, r, relativeURL(path, hash), http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).Format(time.RFC1123))
	}
	w.Header().Set("Content-Type", contentType)
	if fresh(w, r, hash) {
		return
	}
	packed, err := h.packed(key{"v3 " + path, form, hash}, false, pack,
		func() ([]byte, error) { return encodeV3(path, form, build) })
	if err != nil {
		for _, name := range []string{"ETag", "Cache-Control", "Expires"} { // no client may cache the error
			w.Header().Del(name)
		}
		h.options.WriteError(w, r, err)
		return
	}
	writePacked(w, r, packed)
}

// document returns the hash of the named v3 document and a function that builds its JSON, nil if there is none.
func (h *Handler) document(snap *catalog.Snapshot, name string) (hash string, build func() ([]byte, error), err error) {
	if g, gv := lookup(snap, name); gv != nil {
		versions, err := h.hashes.of(g, h.options.Version)
		if gv.Remote != nil {
			return versions[gv.Name], gv.Remote.V3.Read, err
		}
		return versions[gv.Name], func() ([]byte, error) { return h.buildV3(g.Name, gv) }, err
	}
	if at, ok := generalDocuments(snap)[name]; ok {
		return h.generalHash(name), func() ([]byte, error) { return h.buildGeneral(at) }, nil
	}
	return "", nil, nil
}

// encodeV3 encodes the document of that name in that form.
func encodeV3(name, form string, build func() ([]byte, error)) ([]byte, error) {
	body, err := build()
	if err != nil || form == formJSON {
		return body, err
	}
	doc, err := openapi_v3.ParseDocument(body)
	if err != nil {
		return nil, fmt.Errorf("convert OpenAPI v3 of %s to protobuf: %w", name, err)
	}
	return proto.Marshal(doc)
}

// packed returns the compressed document of k. Unless it is cached, it calls build and compress. scan is as in
// kept.put.
func (h *Handler) packed(k key, scan bool, compress func([]byte) []byte, build func() ([]byte, error)) ([]byte, error) {
	if packed := h.cache.get(k); packed != nil {
		return packed, nil
	}
	building := &h.building[0] // parts of v2 depend on each other
	if !scan {
		building = &h.building[1+crc32.ChecksumIEEE([]byte(k.name))%uint32(len(h.building)-1)]
	}
	building.Lock()
	defer building.Unlock()
	if packed := h.cache.get(k); packed != nil { // another request has built it meanwhile
		return packed, nil
	}
	body, err := build()
	if err != nil {
		return nil, err
	}
	packed := bytes.Clone(compress(body)) // the buffer may be twice as large as its content
	h.cache.put(k, packed, scan)
	return packed, nil
}

// fresh sets the ETag and responds with 304 if the client has that document already.
func fresh(w http.ResponseWriter, r *http.Request, hash string) bool {
	etag := strconv.Quote(hash)
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") != etag {
		return false
	}
	w.Header().Del("Content-Type")
	w.WriteHeader(http.StatusNotModified)
	return true
}

func writePlain(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		w.Write(body) // an error means that the client has disconnected
	}
}

// writePacked sends a compressed document unchanged to clients that accept gzip, as all Go clients do.
func writePacked(w http.ResponseWriter, r *http.Request, packed []byte) {
	w.Header().Add("Vary", "Accept-Encoding")
	if takesGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		writePlain(w, r, packed)
		return
	}
	if r.Method != http.MethodHead {
		unpack(w, packed)
	}
}

// pack compresses a document, in concurrent pieces.
func pack(body []byte) []byte {
	pieces := slices.Collect(slices.Chunk(body, 256<<10))
	parts := make([]part, len(pieces))
	parallel(len(pieces), func(i int) { parts[i] = newPart(pieces[i]) })
	var b bytes.Buffer
	w := newPartsWriter(&b, true)
	for _, p := range parts {
		w.part(p)
	}
	_ = w.Close() // a buffer accepts everything
	return b.Bytes()
}

// unpack writes the document compressed by pack.
func unpack(w io.Writer, packed []byte) error {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	_, err = io.Copy(w, z)
	return err
}
