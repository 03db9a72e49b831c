package aggregation

import (
	"context"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// readTimeout bounds the time to read one document, and maxDocument its size.
	readTimeout = time.Minute
	maxDocument = 64 << 20
)

// readDocuments updates the OpenAPI documents of an APIService. It keeps the old version of an unreadable document.
func (a *aggregator) readDocuments(ctx context.Context, name string) {
	r := a.find(name)
	if r == nil || !r.state.Load().available() {
		return
	}
	old := r.documents.Load()
	v3, err := a.readV3(ctx, r, old.v3)
	if err != nil && ctx.Err() == nil {
		a.host.Log.Info("the OpenAPI v3 document of an aggregated API cannot be read; retried after the next check",
			"apiService", name, "error", err)
	}
	v2, err := a.readV2(ctx, r, old.v2)
	if err != nil && ctx.Err() == nil {
		a.host.Log.Info("the OpenAPI v2 document of an aggregated API cannot be read; retried after the next check",
			"apiService", name, "error", err)
	}
	if v3 == old.v3 && v2 == old.v2 {
		return
	}
	a.note(r, func(d *documents) { d.v3, d.v2 = v3, v2 })
}

// documentRequest is a request of this server to another one. etag is "" if nothing is known yet.
type documentRequest struct {
	path, query, accept, etag string
	timeout                   time.Duration
	limit                     int64
}

// get sends a request to the other server.
func (a *aggregator) get(ctx context.Context, r *remote, q *documentRequest) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	address, err := a.address(ctx, r)
	if err != nil {
		return nil, err
	}
	at := url.URL{Scheme: "https", Host: address, Path: q.path, RawQuery: q.query}
	out, err := r.backend.fetch(ctx, at, q.accept, q.etag, q.limit)
	if err == nil && out.code == http.StatusOK && out.body == nil {
		err = errTooLong
	}
	return out, err
}

// document requests a document.
func (a *aggregator) document(ctx context.Context, r *remote, path, query, etag string) (*answer, error) {
	return a.get(ctx, r, &documentRequest{
		path: path, query: query, accept: "application/json", etag: etag, timeout: readTimeout, limit: maxDocument,
	})
}

// readV3 returns the version's OpenAPI v3 document, or old if it has not changed.
func (a *aggregator) readV3(ctx context.Context, r *remote, old *savedDocument) (*savedDocument, error) {
	index, err := a.document(ctx, r, "/openapi/v3", "", "")
	if err != nil || index.code != http.StatusOK {
		return old, err // the document is optional
	}
	var paths struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(index.body, &paths); err != nil {
		return old, err
	}
	at, err := url.Parse(paths.Paths[strings.TrimPrefix(r.path(), "/")].URL)
	if err != nil || at.Path == "" {
		return old, err
	}
	if hash := at.Query().Get("hash"); hash != "" && old != nil && old.ETag == hash {
		return old, nil
	}
	doc, err := a.document(ctx, r, at.Path, at.RawQuery, "")
	if err != nil || doc.code != http.StatusOK {
		return old, err
	}
	if !json.Valid(doc.body) {
		return old, fmt.Errorf("%s is not JSON", at.Path)
	}
	return compress(sum(doc.body), at.Query().Get("hash"), doc.body), nil
}

// readV2 returns the version's part of the other server's OpenAPI v2 document, or old if the document has not changed.
func (a *aggregator) readV2(ctx context.Context, r *remote, old *savedDocument) (*savedDocument, error) {
	etag := ""
	if old != nil {
		etag = old.ETag
	}
	doc, err := a.document(ctx, r, "/openapi/v2", "", etag)
	if err != nil || doc.code != http.StatusOK {
		return old, err
	}
	part, err := partOfV2(doc.body, r.path())
	if err != nil {
		return old, err
	}
	return compress(sum(part), doc.etag, part), nil
}

func sum(doc []byte) string { return fmt.Sprintf("%X", sha512.Sum512(doc)) }

// partOfV2 returns the paths below path, and the definitions that these refer to.
func partOfV2(doc []byte, path string) ([]byte, error) {
	var whole struct {
		Paths       map[string]json.RawMessage `json:"paths"`
		Definitions map[string]json.RawMessage `json:"definitions"`
		Parameters  map[string]json.RawMessage `json:"parameters"`
	}
	if err := json.Unmarshal(doc, &whole); err != nil {
		return nil, err
	}
	part := struct {
		Paths       map[string]json.RawMessage `json:"paths"`
		Definitions map[string]json.RawMessage `json:"definitions"`
		Parameters  map[string]json.RawMessage `json:"parameters,omitempty"`
	}{map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}}
	var follow func(raw json.RawMessage)
	follow = func(raw json.RawMessage) {
		for _, name := range references(raw, "definitions") {
			if _, known := part.Definitions[name]; known || whole.Definitions[name] == nil {
				continue
			}
			part.Definitions[name] = whole.Definitions[name]
			follow(whole.Definitions[name])
		}
	}
	for at, raw := range whole.Paths {
		if at == path || strings.HasPrefix(at, path+"/") {
			part.Paths[at] = raw
			follow(raw)
			for _, name := range references(raw, "parameters") {
				if p := whole.Parameters[name]; p != nil {
					part.Parameters[name] = p
				}
			}
		}
	}
	for name, raw := range whole.Definitions { // keep the definitions of kinds, even if no path refers to them
		if strings.Contains(string(raw), `"x-kubernetes-group-version-kind"`) && part.Definitions[name] == nil &&
			strings.Contains(string(raw), groupOf(path)) {
			part.Definitions[name] = raw
			follow(raw)
		}
	}
	return json.Marshal(part)
}

// groupOf is how a definition names the group that a path is of.
func groupOf(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) == 4 {
		return `"` + parts[2] + `"`
	}
	return `""`
}

// references returns the names that a piece of a document references in a section.
func references(raw []byte, section string) (names []string) {
	mark := `"#/` + section + `/`
	text := string(raw)
	for {
		_, after, found := strings.Cut(text, mark)
		if !found {
			return names
		}
		name, rest, _ := strings.Cut(after, `"`)
		names, text = append(names, name), rest
	}
}
