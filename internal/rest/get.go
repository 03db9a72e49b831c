package rest

import (
	"net/http"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

func (s *Server) serveGet(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	media, err := negotiate(c, r)
	if err != nil {
		return err
	}
	e, err := s.find(r, c)
	if err != nil {
		return err
	}
	if scope := request.ScopeOf(r.Context()); scope != nil && !c.Resource.Virtual {
		scope.Over = true // no other goroutine remains; an unstored object may come from anywhere
	}
	if err := holdEntry(r.Context(), media, e); err != nil {
		return err
	}
	if media.Binary() && media.As == "" {
		return s.writeEntry(w, r, c, e, media)
	}
	raw, err := s.verbs.JSON(c, e)
	if err != nil {
		return err
	}
	body, err := s.transform(c, media, raw, nil)
	if err != nil {
		return err
	}
	return writeDocument(w, r, body, answer{code: http.StatusOK, form: media}, media.message(c))
}

// find returns the entry of the object that a GET requests.
func (s *Server) find(r *http.Request, c *verb.Call) (*watchcache.Entry, error) {
	o, err := getOptions(r)
	if err != nil {
		return nil, err
	}
	return s.verbs.Get(r.Context(), c, o.ResourceVersion)
}
