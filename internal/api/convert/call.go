package convert

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/charge"
)

// call converts objs to apiVersion in one call of r's function or webhook, and checks the result. It returns as many
// objects and errors as objs; where there is an error, the object is nil. objs are not changed.
//
// The texts of errors are Kubernetes', which name an "object" if there is one, and an "object at index" if there are
// several.
func (c *Converter) call(
	ctx context.Context, r *catalog.Resource, apiVersion string, objs []object.Object,
) (out []object.Object,
	errs []error) {
	start := time.Now()
	out, errs, failure := c.ask(ctx, r, apiVersion, objs)
	from, _ := objs[0]["apiVersion"].(string)
	c.metrics.observe(r.Definition.Name, versionName(from), versionName(apiVersion), failure, time.Since(start))
	return out, errs
}

// ask is call, and also returns the type of the failure, if any.
func (c *Converter) ask(
	ctx context.Context, r *catalog.Resource, apiVersion string, objs []object.Object,
) (out []object.Object,
	errs []error, failure string) {
	out, errs = make([]object.Object, len(objs)), make([]error, len(objs))
	kind := kindOf(objs[0])
	all := func(failure string, err error) ([]object.Object, []error, string) {
		for i := range errs {
			errs[i] = err
		}
		return out, errs, failure
	}
	if f := c.function(r); f != nil {
		converted, err := f(ctx, objs, apiVersion)
		if err != nil {
			return all(callFailure, fmt.Errorf("conversion function for %v failed: %w", kind, err))
		}
		if len(converted) != len(objs) {
			return all(partialReply,
				fmt.Errorf("conversion function for %v returned %d objects, expected %d", kind, len(converted),
					len(objs)))
		}
		for i, obj := range converted {
			if out[i], errs[i] = obj, check(objs, i, obj, apiVersion); errs[i] != nil {
				out[i], failure = nil, invalidObject
			}
		}
		return out, errs, failure
	}
	converted, failure, err := c.post(ctx, r, kind, apiVersion, objs)
	if err != nil {
		c.noteFailure(ctx, r, apiVersion, err)
		return all(failure, err)
	}
	for i, raw := range converted {
		obj, err := decodeConverted(raw)
		switch {
		case err == nil:
			err = check(objs, i, obj, apiVersion)
		case len(objs) > 1:
			err = fmt.Errorf("conversion webhook for %v returned invalid converted object at index %v: %w", kind, i,
				err)
		}
		if errs[i] = err; err != nil {
			failure = invalidObject
			continue
		}
		out[i] = obj
	}
	return out, errs, failure
}

// post calls r's webhook and returns as many encoded objects as objs, unchecked.
//
// Errors on the way are included as text, not wrapped: a webhook's Status or timeout must not become the response to
// the client's request.
func (c *Converter) post(
	ctx context.Context, r *catalog.Resource, kind gvk.GroupVersionKind, apiVersion string, objs []object.Object,
) (converted []runtime.RawExtension, failure string, err error) {
	hook, err := conversionOf(r)
	if err != nil {
		return nil, callFailure, err
	}
	version, err := reviewVersion(hook.ConversionReviewVersions)
	if err != nil {
		return nil, callFailure, err
	}
	uid := c.options.NewUID()
	ctx, span := request.StartSpan(ctx, "Call conversion webhook")
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("custom-resource-definition", r.Plural+"."+r.Group),
			attribute.String("desired-api-version", apiVersion), attribute.Int("object-count", len(objs)),
			attribute.String("UID", uid))
	}
	sent := appendReview(nil, version, uid, apiVersion, objs)
	answer, err := c.options.Call(ctx, hook.ClientConfig, sent)
	if err != nil {
		return nil, callFailure, fmt.Errorf("conversion webhook for %v failed: %v", kind, err)
	}
	if err := charge.Reply(sent, answer); err != nil {
		return nil, malformedReply, fmt.Errorf("conversion webhook for %v failed: %v", kind, err)
	}
	converted, err = parseReply(answer, version, uid)
	if err != nil {
		return nil, malformedReply, fmt.Errorf("conversion webhook for %v failed: %v", kind, err)
	}
	if len(converted) != len(objs) {
		return nil, partialReply,
			fmt.Errorf("conversion webhook for %v returned %d objects, expected %d", kind, len(converted), len(objs))
	}
	return converted, "", nil
}

// noteFailure logs that r's webhook fails, unless the client has disconnected.
func (c *Converter) noteFailure(ctx context.Context, r *catalog.Resource, apiVersion string, err error) {
	if ctx.Err() == nil {
		c.options.Log.Warn(
			"conversion webhook failed; requests for objects in another version than the stored one fail until it "+
				"answers", "definition", r.Plural+"."+r.Group, "version", apiVersion, "error", err)
	}
}

// check validates the i-th converted object against the original, and restores metadata that a webhook must not change.
func check(sent []object.Object, i int, got object.Object, apiVersion string) error {
	before, after := kindOf(sent[i]), kindOf(got)
	invalid := fmt.Sprintf("conversion webhook for %v returned invalid ", before)
	object, inMetadata, at := "object", "metadata", "object at index 0"
	if len(sent) > 1 {
		object = fmt.Sprintf("converted object at index %v", i)
		inMetadata, at = fmt.Sprintf("metadata in object at index %v", i), object
	}
	want, _ := gvk.ParseGroupVersion(apiVersion)
	switch {
	case after.GroupVersion() != want:
		return fmt.Errorf("%s%s: invalid groupVersion (expected %v, received %v)", invalid, at, want,
			after.GroupVersion())
	case after.Kind != before.Kind:
		return fmt.Errorf("%s%s: invalid kind (expected %v, received %v)", invalid, at, before.Kind, after.Kind)
	}
	if err := checkIdentity(sent[i], got); err != nil {
		return fmt.Errorf("%s%s: %w", invalid, object, err)
	}
	if err := restoreMetadata(sent[i], got); err != nil {
		return fmt.Errorf("%s%s: %w", invalid, inMetadata, err)
	}
	return nil
}

// kindOf returns an object's kind and apiVersion.
func kindOf(obj object.Object) gvk.GroupVersionKind {
	apiVersion, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	return gvk.FromAPIVersionAndKind(apiVersion, kind)
}

func versionName(apiVersion string) string {
	return apiVersion[strings.LastIndexByte(apiVersion, '/')+1:]
}
