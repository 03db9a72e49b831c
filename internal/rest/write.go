package rest

import (
	"net/http"

	"github.com/bowsprit/bowsprit/internal/verb"
)

// answer is the status code and form of a response.
type answer struct {
	code int
	form
	documents []string // texts of documents within the object, if they are kept (codec.Verbatim)
}

// writeObject responds with one object, in the client's form.
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
