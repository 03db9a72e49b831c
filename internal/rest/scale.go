package rest

import (
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/table"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/verb"
)

func (s *Server) serveScaleGet(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	media, err := negotiateScale(r)
	if err != nil {
		return err
	}
	e, err := s.find(r, c)
	if err != nil {
		return err
	}
	scale, err := s.verbs.Scale(c, e)
	if err != nil {
		return err
	}
	return s.writeScale(w, r, c, scale, media)
}

func (s *Server) serveScaleUpdate(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	message := func() any { return new(autoscalingv1.Scale) }
	in, err := readRequest(r, message, func() (form, error) { return negotiateScale(r) }, updateOptions)
	if err != nil {
		return err
	}
	scale, err := s.verbs.ReplaceScale(r.Context(), c, in.body, in.options)
	if err != nil {
		return err
	}
	return s.writeScale(w, r, c, scale, in.media)
}

func (s *Server) serveScalePatch(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	media, patch, options, err := readPatch(r, c, func() (form, error) { return negotiateScale(r) })
	if err != nil {
		return err
	}
	scale, err := s.verbs.PatchScale(r.Context(), c, patch, options)
	if err != nil {
		return err
	}
	return s.writeScale(w, r, c, scale, media)
}

// writeScale responds with a Scale, or with the part that the client requests.
func (s *Server) writeScale(
	w http.ResponseWriter, r *http.Request, c *verb.Call, scale *autoscalingv1.Scale, media form,
) error {
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(scale)
	if err != nil {
		return err
	}
	doc := codec.AppendJSON(nil, obj)
	switch media.As {
	case "":
		return writeDocument(w, r, doc, answer{code: http.StatusOK, form: media}, &autoscalingv1.Scale{})
	case "PartialObjectMetadata":
		doc, err = codec.PartialMetadata(doc, media.Group+"/"+media.Version)
	case "Table":
		doc, err = table.Scale(c.Resource, table.Row{JSON: doc, Object: obj}, s.tableOptions(c, media))
	default:
		goType := "autoscaling.Scale"
		if c.Resource.Custom() {
			goType = "v1.Scale"
		}
		err = notAsRequested(media, "not a list", goType)
	}
	if err != nil {
		return err
	}
	return writeDocument(w, r, doc, answer{code: http.StatusOK, form: media}, &metav1.PartialObjectMetadata{})
}
