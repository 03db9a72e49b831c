// Package convert converts objects between the versions of their kind.
//
// It stands between the stored bytes and the version of a request: reads convert from storage to request, writes back.
// Kinds without a webhook use the strategy None: apiVersion changes, and fields that the target version's schema does
// not declare are dropped. For other kinds a Converter calls their webhook (package webhook), or a function from the
// program that embeds the server.
//
// Webhooks are slow and may fail, so calls are kept rare: an object is converted once for each requested version
// (cache.go), many objects share a call (batch.go), and concurrent requests for the same object share its conversion.
// Objects already stored in the requested version are never converted.
//
// The rules of a definition (package reshape) come before its webhook. They take the same path with the same cache, but
// nothing leaves the process.
//
// Objects are decoded JSON. A Converter is safe for concurrent use; it starts goroutines only for a batch, and waits
// for them.
package convert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// Function converts objects of one kind to the version apiVersion ("group/version"), in order. It must not change objs.
// Its results are checked like a webhook's.
type Function func(ctx context.Context, objs []object.Object, apiVersion string) ([]object.Object, error)

// Options configures a Converter.
type Options struct {
	// Call calls a definition's webhook: webhook.Client.CallConversion. nil means that webhooks cannot be called.
	Call func(ctx context.Context, c *apiextensionsv1.WebhookClientConfig, body []byte) ([]byte, error)
	// Functions convert the given kinds, overriding the conversion in their definitions.
	Functions map[gvk.GroupKind]Function
	// CacheBytes bounds the memory for converted objects, 128 MiB if zero.
	CacheBytes int
	// NewUID returns IDs of calls; nil means random UUIDs.
	NewUID func() string
	// Log receives reports about failing webhooks; nil discards them.
	Log *slog.Logger
	// Metrics receives the converter's metrics, under Kubernetes' names; nil discards them.
	Metrics prometheus.Registerer
}

// Converter converts objects of all kinds.
type Converter struct {
	options Options
	cache   *cache
	metrics *metrics
}

// New returns a converter.
func New(o Options) *Converter {
	if o.Call == nil {
		o.Call = func(context.Context, *apiextensionsv1.WebhookClientConfig, []byte) ([]byte, error) {
			return nil, errors.New("this server calls no webhooks")
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 128 << 20
	}
	if o.NewUID == nil {
		o.NewUID = uuid.NewString
	}
	c := &Converter{options: o, cache: newCache(o.CacheBytes), metrics: newMetrics()}
	if o.Metrics != nil {
		c.metrics.register(o.Metrics, c.cache)
	}
	return c
}

// Changes reports whether objects of r have other fields in other versions: a webhook, a function or the rules of the
// definition convert them.
func (c *Converter) Changes(r *catalog.Resource) bool {
	return r.Conversion != nil || r.Declared != nil || c.function(r) != nil
}

func (c *Converter) function(r *catalog.Resource) Function {
	if len(c.options.Functions) == 0 {
		return nil
	}
	return c.options.Functions[gvk.GroupKind{Group: r.Group, Kind: r.Kind}]
}

// Convert converts obj, an object of version from as in a request, to version to. It does not change obj, and returns
// it if from is to.
func (c *Converter) Convert(
	ctx context.Context, r *catalog.Resource, from, to *catalog.Version, obj object.Object,
) (object.Object,
	error) {
	out, err := c.ConvertAll(ctx, r, from, to, []object.Object{obj})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// ConvertAll is Convert for several objects of one version, in one call.
func (c *Converter) ConvertAll(
	ctx context.Context, r *catalog.Resource, from, to *catalog.Version, objs []object.Object,
) ([]object.Object, error) {
	if from == to {
		return objs, nil
	}
	if !c.Changes(r) || !slices.ContainsFunc(objs, hasContent) {
		out := make([]object.Object, len(objs))
		for i, obj := range objs {
			out[i] = runtime.DeepCopyJSON(obj)
			if err := rename(r, from, to, out[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	out, errs := c.change(ctx, r, to, objs)
	if err := firstOf(errs); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err() // the request is over, whatever the webhook's result
		}
		return nil, err
	}
	for _, obj := range out {
		if err := prune(r, to, obj); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// hasContent reports whether obj has more than its kind. If structured-merge-diff has removed everything else, no
// webhook is called, as in Kubernetes.
func hasContent(obj object.Object) bool {
	_, kind := obj["kind"]
	_, apiVersion := obj["apiVersion"]
	return len(obj) != 2 || !kind || !apiVersion
}

// Reread converts obj, an object of version from as it would be stored, to the form that a read in version to would
// return. It changes obj. It calls the webhook and bypasses the cache.
func (c *Converter) Reread(
	ctx context.Context, r *catalog.Resource, from, to *catalog.Version, obj object.Object,
) (object.Object,
	error) {
	if err := restore(r, from, obj); err != nil {
		return nil, err
	}
	return c.Convert(ctx, r, from, to, obj)
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Present converts a decoded stored object to version to, in place, without a webhook. First it applies the defaults of
// the stored version and drops fields that the version does not declare.
func Present(r *catalog.Resource, to *catalog.Version, obj object.Object) error {
	from := storedIn(r, obj["apiVersion"])
	if from == nil {
		from = r.Storage
	}
	obj["kind"] = r.Kind
	if err := restore(r, from, obj); err != nil {
		return err
	}
	if from == to {
		obj["apiVersion"] = r.APIVersion(to)
		return nil
	}
	return rename(r, from, to, obj)
}

// Settled reports whether Present certainly leaves raw, a stored object's JSON, unchanged in version ver. If so, the
// server need not decode the object. It is true for nearly all objects that this server stored under the current
// definition.
func Settled(r *catalog.Resource, ver *catalog.Version, raw []byte) bool {
	if rules := r.StrategyFor(ver); rules != nil && (rules.Decode != nil || rules.Default != nil || rules.Read != nil) {
		return false
	}
	sch, err := ver.Schema()
	return err == nil && sch != nil && sch.Settled(raw, r.APIVersion(ver), r.Kind)
}

// storedIn returns the version of r for a stored apiVersion, nil if the definition no longer has it.
func storedIn(r *catalog.Resource, apiVersion any) *catalog.Version {
	for _, v := range r.Versions {
		if r.APIVersion(v) == apiVersion {
			return v
		}
	}
	return nil
}

// restore repeats NormalizeRequest on a stored object, with the current schema.
func restore(r *catalog.Resource, v *catalog.Version, obj object.Object) error {
	if err := schema.SalvageMetadata(obj); err != nil {
		return fmt.Errorf("metadata of a stored %s: %w", r.Kind, err)
	}
	if r.Custom() {
		repairGeneration(obj)
	}
	rules := r.StrategyFor(v)
	if rules == nil || rules.Decode == nil {
		sch, err := v.Schema()
		if err != nil {
			return fmt.Errorf("schema of %s %s: %w", r.Qualified(), v.Name, err)
		}
		if sch != nil {
			sch.NormalizeStored(obj)
		}
	}
	if rules != nil && rules.Default != nil {
		rules.Default(obj)
	}
	if rules != nil && rules.Read != nil {
		rules.Read(obj)
	}
	return nil
}

// repairGeneration sets the generation of an object stored before generations were counted to 1, as Kubernetes does.
func repairGeneration(obj object.Object) {
	meta, _ := obj["metadata"].(object.Object)
	if generation, _ := meta["generation"].(int64); meta != nil && generation == 0 {
		meta["generation"] = int64(1)
	}
}

// rename converts obj from version from in place, without a webhook: built-in kinds by their own code, custom ones by
// the strategy None.
func rename(r *catalog.Resource, from, to *catalog.Version, obj object.Object) error {
	if r.Convert != nil {
		if err := r.Convert(from, to, obj); err != nil {
			return fmt.Errorf("convert %s from %s to %s: %w", r.Kind, r.APIVersion(from), r.APIVersion(to), err)
		}
		obj["apiVersion"] = r.APIVersion(to)
		return nil
	}
	obj["apiVersion"] = r.APIVersion(to)
	return prune(r, to, obj)
}

// prune drops fields from an object that its new version to does not declare.
func prune(r *catalog.Resource, to *catalog.Version, obj object.Object) error {
	sch, err := to.Schema()
	if err != nil {
		return fmt.Errorf("schema of %s %s: %w", r.Qualified(), to.Name, err)
	}
	if sch == nil {
		return nil
	}
	return sch.NormalizeConverted(obj)
}

// conversionKey is where a resource's decoded webhook is kept: with its storage version.
type conversionKey struct{}

type conversionOrError struct {
	conversion *apiextensionsv1.WebhookConversion
	err        error
}

// conversionOf returns the webhook of r, decoded once.
func conversionOf(r *catalog.Resource) (*apiextensionsv1.WebhookConversion, error) {
	kept := r.Storage.Derived(conversionKey{}, func() any {
		conversion, err := r.Conversion()
		return conversionOrError{conversion, err}
	}).(conversionOrError)
	return kept.conversion, kept.err
}
