package rest

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/verb"
)

func (s *Server) serveDelete(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	if c.Name == "" {
		return nameless(c)
	}
	media, err := negotiate(c, r)
	if err != nil {
		return err
	}
	options, err := s.deleteOptions(r)
	if err != nil {
		return err
	}
	verb.WarnDependents(r.Context(), c, options)
	res, err := s.verbs.Delete(r.Context(), c, *options)
	if err != nil {
		return err
	}
	if res.Deleted && (!c.Version.ReturnsDeleted || res.Object == nil) {
		status, err := deletedStatus(c, res)
		if err != nil {
			return err
		}
		return writeDocument(w, r, status, answer{code: http.StatusOK, form: media}, &metav1.Status{})
	}
	code := http.StatusOK
	//lint:ignore SA1019 older clients send it
	if orphan := options.OrphanDependents; orphan != nil && !*orphan && !res.Deleted {
		code = http.StatusAccepted
	}
	return s.writeObject(w, r, c, res, answer{code: code, form: media})
}

// deletedStatus returns the response to a completed deletion.
func deletedStatus(c *verb.Call, res *verb.Result) ([]byte, error) {
	if res.Object == nil { // the object was unreadable
		return successful(metav1.Status{
			Code: http.StatusOK, Details: &metav1.StatusDetails{Name: c.Name, Kind: c.Resource.Kind},
		})
	}
	return successful(metav1.Status{Details: &metav1.StatusDetails{
		Name: c.Name, Group: c.Resource.Group, Kind: c.Resource.Plural,
		UID: types.UID(object.String(object.Meta(res.Object), "uid")),
	}})
}
