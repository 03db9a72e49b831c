package conversion

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// reviewer answers ConversionReviews by the rules of definitions. It is safe for concurrent use.
type reviewer struct {
	kinds     map[schema.GroupKind]*definition
	converted *prometheus.CounterVec
	durations prometheus.Histogram
}

func newReviewer(all []*definition, registry prometheus.Registerer) (*reviewer, error) {
	r := &reviewer{
		kinds: map[schema.GroupKind]*definition{},
		converted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bowsprit_convert_objects_total",
			Help: "Objects in conversion reviews",
		}, []string{"crd_name", "from_version", "to_version", "succeeded"}),
		durations: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "bowsprit_convert_review_duration_seconds",
			Help:    "Time to answer a conversion review",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}),
	}
	for _, d := range all {
		if d.err != nil {
			return nil, fmt.Errorf("%s: %s: %w", d.file, d.name, d.err)
		}
		kind := schema.GroupKind{Group: d.def.Spec.Group, Kind: d.def.Spec.Names.Kind}
		if other := r.kinds[kind]; other != nil {
			return nil, fmt.Errorf("%s and %s define the same kind: remove one", other.file, d.file)
		}
		r.kinds[kind] = d
	}
	registry.MustRegister(r.converted, r.durations)
	return r, nil
}

// errNoReview refuses a body that is not a review.
var errNoReview = errors.New("the body must be a ConversionReview of apiextensions.k8s.io/v1 or v1beta1 with a request")

// answer returns the response for an encoded review. Objects that do not convert are failures within the response; an
// error means that the body is no review.
func (r *reviewer) answer(ctx context.Context, body []byte) ([]byte, error) {
	defer func(began time.Time) { r.durations.Observe(time.Since(began).Seconds()) }(time.Now())
	review := &apiextensionsv1.ConversionReview{} // v1beta1 has the same form
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, review); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoReview, err)
	}
	group, version, _ := strings.Cut(review.APIVersion, "/")
	known := group == apiextensionsv1.GroupName && (version == "v1" || version == "v1beta1")
	if review.Kind != "ConversionReview" || !known || review.Request == nil {
		return nil, errNoReview
	}
	objects := make([]any, 0, len(review.Request.Objects))
	result := object.Object{"status": metav1.StatusSuccess}
	for i := range review.Request.Objects {
		obj, err := r.convert(ctx, review.Request.Objects[i].Raw, review.Request.DesiredAPIVersion)
		if err != nil {
			objects, result = nil, object.Object{"status": metav1.StatusFailure, "message": err.Error()}
			break
		}
		objects = append(objects, obj)
	}
	return codec.AppendJSON(nil, object.Object{
		"apiVersion": review.APIVersion, "kind": review.Kind, "response": object.Object{
			"uid": string(review.Request.UID), "convertedObjects": objects, "result": result,
		},
	}), nil
}

// convert converts one encoded object to an apiVersion. The error names it.
func (r *reviewer) convert(ctx context.Context, raw []byte, to string) (object.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		return nil, err
	}
	obj, ok := v.(object.Object)
	if !ok {
		return nil, errors.New("is not an object")
	}
	from, _ := schema.ParseGroupVersion(object.String(obj, "apiVersion"))
	target, _ := schema.ParseGroupVersion(to)
	d := r.kinds[schema.GroupKind{Group: from.Group, Kind: object.String(obj, "kind")}]
	if d == nil || target.Group != from.Group {
		return nil, fmt.Errorf("no rules convert %s of %s to %s", object.String(obj, "kind"),
			object.String(obj, "apiVersion"), to)
	}
	err = d.convert(obj, from.Version, target.Version)
	r.converted.WithLabelValues(d.name, d.known(from.Version), d.known(target.Version), fmt.Sprint(err == nil)).Inc()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.name, nameOf(obj), err)
	}
	return obj, nil
}

// convert converts obj in place. Fields that its schema lacks have no effect, as in a server with the rules.
func (d *definition) convert(obj object.Object, from, to string) error {
	if err := d.plan.Prune(obj, from); err != nil {
		return err
	}
	if err := d.plan.Convert(obj, from, to); err != nil {
		return err
	}
	obj["apiVersion"] = d.def.Spec.Group + "/" + to
	return nil
}

// known returns the name of a version of the definition, or "other": clients do not add label values.
func (d *definition) known(version string) string {
	for i := range d.def.Spec.Versions {
		if d.def.Spec.Versions[i].Name == version {
			return version
		}
	}
	return "other"
}

// nameOf returns the name of an object, with its namespace.
func nameOf(obj object.Object) string {
	name := object.String(obj, "metadata", "name")
	if namespace := object.String(obj, "metadata", "namespace"); namespace != "" {
		return namespace + "/" + name
	}
	return name
}
