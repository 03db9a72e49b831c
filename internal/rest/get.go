package rest

import (
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

func (s *Server) serveGet(w http.ResponseWriter, r *http.Request, c *Call) error {
	media, err := c.negotiate(r)
	if err != nil {
		return err
	}
	e, err := s.find(r, c)
	if err != nil {
		return err
	}
	if media.Binary() && media.As == "" {
		return s.writeEntry(w, r, c, e, media)
	}
	raw, err := s.served(c, e)
	if err != nil {
		return err
	}
	body, err := s.transform(c, media, raw, nil)
	if err != nil {
		return err
	}
	return writeDocument(w, r, http.StatusOK, body, media, media.message(c))
}

// find returns the entry of the object that r names, not older than r wants it and in the call's version.
func (s *Server) find(r *http.Request, c *Call) (*watchcache.Entry, error) {
	o, err := getOptions(r)
	if err != nil {
		return nil, err
	}
	if c.Resource.Virtual {
		found, err := s.unstored(r.Context(), c, c.Name)
		if err != nil {
			return nil, err
		}
		return found[0], nil
	}
	if _, err := s.catchUp(r.Context(), o.ResourceVersion); err != nil {
		return nil, err
	}
	e, err := s.seen(c)
	if err != nil {
		return nil, err
	}
	return s.inVersion(r.Context(), c, e)
}

// parseRevision reads a resourceVersion parameter. The error is the one that kube makes a 500 of for a get and a
// watch, and a 400 for a list.
func parseRevision(text string) (int64, error) {
	v, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, field.Invalid(field.NewPath("resourceVersion"), text, err.Error())
	}
	return int64(v), nil
}
