package rest

import (
	"net/http"

	"github.com/bowsprit/bowsprit/internal/verb"
)

// writeObject answers with one object, in the form the client asked for.
func (s *Server) writeObject(
	w http.ResponseWriter, r *http.Request, code int, c *verb.Call, res *verb.Result, media form,
) error {
	body, err := s.transform(c, media, res.Bytes(), res.Object)
	if err != nil {
		return err
	}
	return writeDocument(w, r, code, body, media, media.message(c))
}
