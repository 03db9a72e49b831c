package rest

import (
	"net/http"

	"github.com/bowsprit/bowsprit/internal/verb"
)

// serveCreate is a POST to a collection.
func (s *Server) serveCreate(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	in, err := readRequest(r, c.Version.New, accepts(r, c), createOptions)
	if err != nil {
		return err
	}
	made, err := s.verbs.CreateFrom(r.Context(), c, in.body, in.options)
	if err != nil {
		return err
	}
	return s.writeObject(w, r, c, made, answer{code: http.StatusCreated, form: in.media})
}

// serveVirtual handles a POST to a resource or subresource without stored objects.
func (s *Server) serveVirtual(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	of, err := s.verbs.Virtual(c)
	if err != nil {
		return err
	}
	accept := func() (form, error) { return negotiateVirtual(of, r) }
	in, err := readRequest(r, of.Version.New, accept, createOptions)
	if err != nil {
		return err
	}
	res, err := s.verbs.Answer(r.Context(), c, of, in.body, in.options)
	if err != nil {
		return err
	}
	return s.writeObject(w, r, of, res, answer{code: http.StatusCreated, form: in.media})
}

// serveAction handles a POST to a subresource such as pods/binding: its body is of another kind, and the response is a
// Status.
func (s *Server) serveAction(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	in, err := readRequest(r, nil, func() (form, error) { return form{}, nil }, createOptions)
	if err != nil {
		return err
	}
	if err := s.verbs.Act(r.Context(), c, s.verbs.Action(c), in.body, in.options); err != nil {
		return err
	}
	return writeSuccess(w, r)
}
