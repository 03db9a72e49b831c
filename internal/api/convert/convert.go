// Package convert brings objects of one version of their kind into another.
//
// It stands between the stored bytes and the version that a request names: on reads from storage to request, on writes
// back. Kinds without a webhook are converted by the strategy None: only apiVersion changes, and what the target
// version's schema does not declare is dropped. For the others a Converter calls their webhook (package webhook), or a
// function that the program which embeds the server has given.
//
// Webhooks are slow and may be broken, so they are asked as seldom as can be: an object is converted once into a
// version that a request asks for (cache.go), many objects go into one call (batch.go), those who want the same at the
// same time share the call. Nothing is converted into a version that no request asked for, and an object that is
// stored in the asked version never is.
//
// Objects are decoded JSON. A Converter is safe for concurrent use; its only goroutines are those of one batch, which
// it waits for.
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
	"github.com/bowsprit/bowsprit/internal/net/webhook"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// Function converts objects of one kind into the version apiVersion ("group/version"), in order. It must not change
// objs. What it returns is checked as a webhook's reply is.
type Function func(ctx context.Context, objs []object.Object, apiVersion string) ([]object.Object, error)

// Options are what a Converter works with.
type Options struct {
	// Call calls a webhook: webhook.Client.Call. nil means that none can be called.
	Call func(ctx context.Context, t webhook.Target, body []byte) ([]byte, error)
	// Functions convert the kinds they are given for, whatever their definitions say about conversion.
	Functions map[gvk.GroupKind]Function
	// CacheBytes bounds the memory for converted objects, 128 MiB if zero.
	CacheBytes int
	// NewUID names calls; random UUIDs if nil.
	NewUID func() string
	// Log receives what webhooks do wrong; nil drops it.
	Log *slog.Logger
	// Metrics is where the converter's metrics go, with kube's names; nil drops them.
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
		o.Call = func(context.Context, webhook.Target, []byte) ([]byte, error) {
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

// NeedsWebhook reports whether converting objects of r takes more than renaming: a call of a webhook or of a function.
func (c *Converter) NeedsWebhook(r *catalog.Resource) bool {
	return r.Conversion != nil || c.function(r) != nil
}

func (c *Converter) function(r *catalog.Resource) Function {
	if len(c.options.Functions) == 0 {
		return nil
	}
	return c.options.Functions[gvk.GroupKind{Group: r.Group, Kind: r.Kind}]
}

// Convert returns obj, an object of version from as a request brings it, as one of version to. obj is not changed; it
// is returned if from is to.
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
	if !c.NeedsWebhook(r) || !slices.ContainsFunc(objs, hasContent) {
		out := make([]object.Object, len(objs))
		for i, obj := range objs {
			out[i] = runtime.DeepCopyJSON(obj)
			if err := rename(r, from, to, out[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	out, errs := c.call(ctx, r, r.APIVersion(to), objs)
	if err := firstOf(errs); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err() // the request is over, whatever the webhook had to say
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

// hasContent reports whether obj is more than its kind. Where structured-merge-diff has taken away all that an object
// had, no webhook is asked about the rest, as in Kubernetes.
func hasContent(obj object.Object) bool {
	_, kind := obj["kind"]
	_, apiVersion := obj["apiVersion"]
	return len(obj) != 2 || !kind || !apiVersion
}

// Reread returns obj, an object of version from as it would be stored, as a read in version to would show it. obj is
// changed. It asks the webhook, and keeps nothing.
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

// Present brings a decoded stored object into version to, in place, as a read shows it, where that takes no call. What
// is in storage gets the defaults of the version it was stored in and loses what that version does not declare, then
// it is converted.
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

// Settled reports whether the JSON of a stored object is certain to be what Present makes of it in version to, so that
// it need not be decoded and encoded again. Nearly all that this server has stored under today's definition is.
func Settled(r *catalog.Resource, to *catalog.Version, raw []byte) bool {
	if rules := r.StrategyFor(to); rules != nil && (rules.Decode != nil || rules.Default != nil || rules.Read != nil) {
		return false
	}
	sch, err := to.Schema()
	return err == nil && sch != nil && sch.Settled(raw, r.APIVersion(to), r.Kind)
}

// storedIn returns the version of r that a stored apiVersion names, nil if the definition has it no more.
func storedIn(r *catalog.Resource, apiVersion any) *catalog.Version {
	for _, v := range r.Versions {
		if r.APIVersion(v) == apiVersion {
			return v
		}
	}
	return nil
}

// restore does to a stored object what NormalizeRequest did when it was written, by today's schema.
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

// repairGeneration gives an object that was stored before generations were counted its first one, as Kubernetes does.
func repairGeneration(obj object.Object) {
	meta, _ := obj["metadata"].(object.Object)
	if generation, _ := meta["generation"].(int64); meta != nil && generation == 0 {
		meta["generation"] = int64(1)
	}
}

// rename converts obj, of version from, in place where that takes no call: built-in kinds by code of their own, custom
// ones by the strategy None.
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

// prune drops from an object that was converted into version to what that version does not declare.
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
