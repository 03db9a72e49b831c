package rest

import (
	"net/http"

	"github.com/bowsprit/bowsprit/internal/verb"
)

// answer is how a request is answered: with which status, in which form.
type answer struct {
	code int
	form
	documents []string // texts of those within an object that is answered with, if they are kept (codec.Verbatim)
}

// writeObject answers with one object, in the form the client asked for.
func (s *Server) writeObject(
	w http.ResponseWriter, r *http.Request, c *verb.Call, res *verb.Result, as answer,
) error {
	if c.Secrecy.Masked {
		res = &verb.Result{Object: c.Secrecy.Shown(res.Object)}
	}
	body, err := s.transform(c, as.form, res.Bytes(), res.Object)
	if err != nil {
		return err
	}
	as.documents = res.Documents
	return writeDocument(w, r, body, as, as.message(c))
}
