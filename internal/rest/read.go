package rest

import (
	"net/http"

	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// input holds the common parts of all requests with a body.
type input[O any] struct {
	media   form
	body    decode.Body
	options O
}

// readRequest reads a request and reports errors in Kubernetes' order: accept, which checks everything before the body
// and returns the form of the response, then the body, then the options in the query. message makes a Go value of the
// body's kind, nil if it has none.
func readRequest[O any](
	r *http.Request, message func() any, accept func() (form, error), options func(*http.Request) (*O, error),
) (in input[O], err error) {
	if in.media, err = accept(); err != nil {
		return in, err
	}
	in.body.Type = r.Header.Get("Content-Type")
	if in.body.Data, err = readBody(r); err != nil {
		return in, err
	}
	if err := chargeBody(r, in.body, message); err != nil {
		return in, err
	}
	o, err := options(r)
	if err != nil {
		return in, err
	}
	in.options = *o
	return in, nil
}

// accepts returns a function that negotiates the form of a response with an object of the call's kind.
func accepts(r *http.Request, c *verb.Call) func() (form, error) {
	return func() (form, error) { return negotiate(c, r) }
}

// named is accepts for a verb that needs the name of an object.
func named(r *http.Request, c *verb.Call) func() (form, error) {
	return func() (form, error) {
		if c.Name == "" {
			return form{}, nameless(c)
		}
		return negotiate(c, r)
	}
}
