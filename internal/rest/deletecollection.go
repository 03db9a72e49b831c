package rest

import (
	"net/http"

	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/corrupt"
)

func (s *Server) serveDeleteCollection(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	media, err := negotiate(c, r)
	if err != nil {
		return err
	}
	opts, err := listOptions(r.URL.Query())
	if err != nil {
		return err
	}
	options, err := s.deleteOptions(r)
	if err != nil {
		return err
	}
	if corrupt.Requested(options) {
		return invalidOptions("DeleteOptions", corrupt.NotInCollections())
	}
	verb.WarnDependents(r.Context(), c, options)
	page, err := s.verbs.List(r.Context(), c, opts)
	if err != nil {
		return err
	}
	if err := s.verbs.DeleteAll(r.Context(), c, page.Entries, *options); err != nil {
		return err
	}
	return s.writeList(w, r, c, page, media)
}
