package rest

import (
	"net/http"

	"github.com/bowsprit/bowsprit/internal/verb"
)

// serveUpdate is a PUT to an object, or to a subresource that shows it.
func (s *Server) serveUpdate(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	in, err := readRequest(r, c.Version.New, named(r, c), updateOptions)
	if err != nil {
		return err
	}
	res, err := s.verbs.Replace(r.Context(), c, in.body, in.options)
	if err != nil {
		return err
	}
	return s.writeObject(w, r, c, res, answer{code: codeOf(res), form: in.media})
}

// codeOf returns the status code for the result of a write.
func codeOf(res *verb.Result) int {
	if res.Created {
		return http.StatusCreated
	}
	return http.StatusOK
}
