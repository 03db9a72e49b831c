// Package pages serves /flagz and /statusz, which show the flags and the state of this process.
//
// Its handlers serve non-resource paths behind package front. Both pages are plain text, for people, or an object of
// group config.k8s.io, if the Accept header names it (`application/json;g=config.k8s.io;v=v1beta1;as=Statusz`). Rules:
// pkg/server/flagz and pkg/server/statusz of k8s.io/apiserver 0.36.
package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

// component is kube-apiserver's name on these pages.
const component = "apiserver"

// The group and the versions of the objects.
const (
	group      = "config.k8s.io"
	current    = "v1beta1"
	deprecated = "v1alpha1"
)

const plain = "text/plain"

// page is the content of one path.
type page struct {
	kind   string
	text   func() string               // returns the text below the heading
	object func(apiVersion string) any // with kind and apiVersion
}

// serve handles a request with any method, as Kubernetes does.
func (p page) serve(w http.ResponseWriter, r *http.Request) {
	m := codec.Media{Type: plain}
	if r.Header.Get("Accept") != "" {
		offered := []string{codec.JSON, codec.YAML, plain}
		if slices.Contains(codec.Offered(r.Context()), codec.CBOR) {
			offered = append(offered, codec.CBOR)
		}
		var ok bool
		if m, ok = codec.Choose(r, offered, p.allows); !ok {
			codec.WriteError(w, r, codec.NotAcceptable(offered...))
			return
		}
	}
	if m.Type == plain {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w,
			"\n%s %s\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n%s",
			component, strings.ToLower(p.kind), p.text())
		return
	}
	if m.Version == deprecated {
		request.Warn(r.Context(), "This version of the "+strings.ToLower(p.kind)+
			" endpoint is deprecated. Please use a newer version.")
	}
	doc, err := json.Marshal(p.object(group + "/" + m.Version))
	if err != nil {
		codec.WriteError(w, r, err)
		return
	}
	codec.WriteKind(w, r, http.StatusOK, doc, m)
}

// allows reports whether the page supports a media type: plain text, or an object by name.
func (p page) allows(m codec.Media) bool {
	if m.Type == plain {
		return m.Group == "" && m.Version == "" && m.As == ""
	}
	return m.Group == group && (m.Version == current || m.Version == deprecated) && m.As == p.kind
}
