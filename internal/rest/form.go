package rest

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/table"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// form is the representation that a client requests: the media type, and whether it wants the object, its metadata or a
// table.
type form struct {
	codec.Media
	include metav1.IncludeObjectPolicy // the part of the object to include in table rows
}

// negotiate returns the form of a response with an object or a list of the call's kind.
func negotiate(c *verb.Call, r *http.Request) (form, error) {
	m, err := codec.Negotiate(r, offer(c))
	return formOf(r, m, err)
}

func negotiateWatch(c *verb.Call, r *http.Request) (form, error) {
	m, err := codec.NegotiateWatch(r, offer(c))
	return formOf(r, m, err)
}

// negotiateScale is negotiate for a Scale, which has a protobuf form for every scaled kind.
func negotiateScale(r *http.Request) (form, error) {
	m, err := codec.Negotiate(r, codec.Offer{Message: true})
	return formOf(r, m, err)
}

// negotiateVirtual is negotiate for the response to a POST of an unstored object, such as a review; it has no table
// form.
func negotiateVirtual(c *verb.Call, r *http.Request) (form, error) {
	o := offer(c)
	o.NoTable = true
	m, err := codec.Negotiate(r, o)
	return form{Media: m}, err
}

func offer(c *verb.Call) codec.Offer { return codec.Offer{Message: c.Version.New != nil} }

func formOf(r *http.Request, m codec.Media, err error) (form, error) {
	f := form{Media: m}
	if err != nil || m.As != "Table" || r.URL.RawQuery == "" {
		return f, err
	}
	f.include = metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject"))
	if err := table.CheckIncludeObject(string(f.include)); err != nil {
		return f, err
	}
	return f, nil
}

// plain returns the form for a response of another kind: a Status or a Scale.
func (f form) plain() codec.Media { return codec.Media{Type: f.Type, Pretty: f.Pretty} }

func (s *Server) tableOptions(c *verb.Call, f form) table.Options {
	return table.Options{Version: f.Version, IncludeObject: f.include, Env: s.verbs.Env(c)}
}

// transform converts an object's bytes to the client's form.
func (s *Server) transform(c *verb.Call, f form, raw []byte, obj object.Object) ([]byte, error) {
	switch f.As {
	case "":
		return raw, nil
	case "PartialObjectMetadata":
		return codec.PartialMetadata(raw, f.Group+"/"+f.Version)
	case "Table":
		return table.Single(c.Resource, c.Version, table.Row{JSON: raw, Object: obj}, s.tableOptions(c, f))
	}
	if c.Resource.Custom() {
		return nil, errors.New("content is not a list") // a 500, as in Kubernetes
	}
	return nil, notAsRequestedOf(c, f, "not a list", "")
}

// notAsRequestedOf is the error for a request of list metadata for a single object, or the reverse. As in Kubernetes,
// the text names the Go type.
func notAsRequestedOf(c *verb.Call, f form, noun, suffix string) error {
	goType := "unstructured.Unstructured" + suffix
	if !c.Resource.Custom() {
		goType = decode.GoPackage(c.Resource.Group) + "." + c.Resource.Kind + suffix
	}
	return notAsRequested(f, noun, goType)
}

func notAsRequested(f form, noun, goType string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: fmt.Sprintf("you requested %s, but the requested object is %s (*%s)", f.As, noun, goType),
	}}
}

// transformEvent is transform for the object of a watch event. Only the first row has column definitions.
func (st *stream) transformEvent(raw []byte) ([]byte, error) {
	if st.form.As != "Table" {
		f := st.form
		if f.As == "PartialObjectMetadataList" {
			f.As = "PartialObjectMetadata"
		}
		return st.s.transform(st.call(), f, raw, nil)
	}
	o := st.s.tableOptions(st.call(), st.form)
	o.NoHeaders = st.rows > 0
	return table.Single(st.call().Resource, st.call().Version, table.Row{JSON: raw}, o)
}

// writeTable responds with a list as a table, row by row.
func (s *Server) writeTable(w http.ResponseWriter, r *http.Request, c *verb.Call, p *verb.Page, f form) error {
	entries, err := s.ranked(c, p.Entries)
	if err != nil {
		return err
	}
	out := table.New(c.Resource, c.Version, s.tableOptions(c, f))
	body := out.Header(nil, p.ListMeta())
	for _, e := range entries {
		raw, err := s.verbs.JSON(c, e)
		if err != nil {
			return err
		}
		if body, err = out.AppendRow(r.Context(), body, table.Row{JSON: raw}); err != nil {
			return err
		}
	}
	body = out.Trailer(body)
	if c.Audit != nil && c.Audit.Answers() {
		c.Audit.ResponseObject(body)
	}
	codec.WriteObject(w, r, http.StatusOK, body, f.plain())
	return nil
}

// ranked returns the entries in the order of table rows (catalog.Strategy.Rank), usually their own order.
func (s *Server) ranked(c *verb.Call, entries []*watchcache.Entry) ([]*watchcache.Entry, error) {
	if c.Strategy() == nil || c.Strategy().Rank == nil {
		return entries, nil
	}
	ranks := make(map[*watchcache.Entry]int64, len(entries))
	for _, e := range entries {
		obj, err := s.verbs.Object(c, e)
		if err != nil {
			return nil, err
		}
		ranks[e] = c.Strategy().Rank(obj)
	}
	return slices.SortedStableFunc(slices.Values(entries),
		func(a, b *watchcache.Entry) int { return cmp.Compare(ranks[a], ranks[b]) }), nil
}
