package rest

import (
	"net/http"

	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// input is what all requests with a body have in common.
type input[O any] struct {
	media   form
	body    decode.Body
	options O
}

// readRequest reads a request in the order in which kube finds fault with one: the form of the answer, which accept
// returns after it has looked at all that comes before the body, the body, and the options of the verb in the query.
func readRequest[O any](
	r *http.Request, accept func() (form, error), options func(*http.Request) (*O, error),
) (in input[O], err error) {
	if in.media, err = accept(); err != nil {
		return in, err
	}
	in.body.Type = r.Header.Get("Content-Type")
	if in.body.Data, err = readBody(r); err != nil {
		return in, err
	}
	o, err := options(r)
	if err != nil {
		return in, err
	}
	in.options = *o
	return in, nil
}

// accepts returns the form of an answer with an object of the call's kind.
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
