package rest

import (
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (s *Server) serveGet(w http.ResponseWriter, r *http.Request, c *Call) error {
	media, err := c.negotiate(r)
	if err != nil {
		return err
	}
	o, err := getOptions(r)
	if err != nil {
		return err
	}
	if _, err := s.catchUp(r.Context(), o.ResourceVersion); err != nil {
		return err
	}
	e := s.View.Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, c.Name)
	if e == nil {
		return apierrors.NewNotFound(c.groupResource(), c.Name)
	}
	if e, err = s.inVersion(r.Context(), c, e); err != nil {
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

// parseRevision reads a resourceVersion parameter. The error is the one that kube makes a 500 of for a get and a watch, and
// a 400 for a list.
func parseRevision(text string) (int64, error) {
	v, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, field.Invalid(field.NewPath("resourceVersion"), text, err.Error())
	}
	return int64(v), nil
}
