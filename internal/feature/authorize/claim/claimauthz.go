// Package claim decides who may write which part of the status of a ResourceClaim.
//
// The permission for resourceclaims/status is not enough (KEP-4817, kube's feature gate
// DRAResourceClaimGranularStatusAuthorization): what a claim has got, and for whom it is reserved, is for those who may
// write resourceclaims/binding, which schedulers do; the state of a device is for those who may write
// resourceclaims/driver of the name of its driver, with a verb that says on which nodes. Neither of them is served.
//
// It stands beside the validation of an update, as a limit of the verbs (verb.Limit). The rules and the texts are those
// of k8s.io/kubernetes/pkg/registry/resource. All is safe for concurrent use.
package claim

import (
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Part brings the limit of the status of claims.
func Part() part.Part {
	return part.Part{Name: "status of claims", Handlers: func(h *part.Host) part.Handlers {
		return part.Handlers{Limits: map[string]verb.Limit{
			"resourceclaims." + resourcev1.GroupName + "/status": Limit(h.Authorizer),
		}}
	}}
}

// Limit returns the limit of what a answers.
func Limit(a authz.Authorizer) verb.Limit {
	return func(ctx context.Context, c *verb.Call, obj, old object.Object) field.ErrorList {
		if c.User == nil {
			return nil // the server itself
		}
		w := write{ctx: ctx, authorizer: a, call: c,
			now: rule.As[resourcev1.ResourceClaimStatus](obj["status"]),
			was: rule.As[resourcev1.ResourceClaimStatus](old["status"]),
		}
		errs := w.binding()
		if w.now.Allocation != nil { // without one, the devices go with it
			errs = append(errs, w.devices()...)
		}
		return errs
	}
}

// write is an update of the status of a claim.
type write struct {
	ctx        context.Context
	authorizer authz.Authorizer
	call       *verb.Call
	now, was   resourcev1.ResourceClaimStatus
}

// binding refuses to change what a claim has got and who uses it. The permission is one for all claims.
func (w *write) binding() field.ErrorList {
	if equality.Semantic.DeepEqual(w.now.Allocation, w.was.Allocation) &&
		equality.Semantic.DeepEqual(w.now.ReservedFor, w.was.ReservedFor) {
		return nil
	}
	err := w.require(w.call.Verb, resourcev1.SubresourceBinding, "", "")
	if err == nil {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("status", "allocation"), fmt.Sprintf(
		`changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="%s" permission: %s`,
		w.call.Verb, err))}
}

// devices refuses to change what is said of a driver's devices.
func (w *write) devices() (errs field.ErrorList) {
	drivers := changedDrivers(w.now.Devices, w.was.Devices)
	if len(drivers) == 0 {
		return nil
	}
	verbs := []string{resourcev1.VerbPrefixArbitraryNode + w.call.Verb}
	if node := onlyNode(w.now.Allocation); node != "" && authz.RunsOn(w.call.User, node) {
		verbs = slices.Insert(verbs, 0, resourcev1.VerbPrefixAssociatedNode+w.call.Verb)
	}
	for _, driver := range drivers {
		if err := w.driver(driver, verbs); err != nil {
			errs = append(errs, field.Forbidden(field.NewPath("status", "devices"), fmt.Sprintf(
				`changing status.devices requires resource="resourceclaims/driver", verb="%s" permission: %s`, verbs, err)))
		}
	}
	return errs
}

// driver returns nil if one of the verbs is allowed, else what is said of the first.
func (w *write) driver(name string, verbs []string) error {
	var first error
	for _, v := range verbs {
		err := w.require(v, resourcev1.SubresourceDriver, w.call.Namespace, name)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// require returns nil if the user may do that. An authorizer that fails does not allow it, and its error is the reason.
func (w *write) require(verb, subresource, namespace, name string) error {
	what := &request.Info{
		IsResource: true, Verb: verb, APIPrefix: "apis", Group: resourcev1.GroupName, Version: w.call.Version.Name,
		Resource: "resourceclaims", Subresource: subresource, Namespace: namespace, Name: name,
	}
	decision, err := w.authorizer.Authorize(w.ctx, w.call.User, what)
	reason := decision.Reason
	switch {
	case decision.Allowed():
		return nil
	case err != nil && reason != "":
		reason = fmt.Sprintf("%v: %s", err, reason)
	case err != nil:
		reason = err.Error()
	}
	return authz.Forbidden(w.call.User, what, reason)
}

type deviceKey struct{ driver, pool, device, share string }

// changedDrivers returns the drivers of the devices of which something else is said than before, sorted.
func changedDrivers(now, was []resourcev1.AllocatedDeviceStatus) (drivers []string) {
	before := map[deviceKey]resourcev1.AllocatedDeviceStatus{}
	for _, d := range was {
		before[keyOf(d)] = d
	}
	for _, d := range now {
		old, known := before[keyOf(d)]
		delete(before, keyOf(d))
		if !known || !equality.Semantic.DeepEqual(old, d) {
			drivers = append(drivers, d.Driver)
		}
	}
	for _, d := range before {
		drivers = append(drivers, d.Driver)
	}
	slices.Sort(drivers)
	return slices.Compact(drivers)
}

func keyOf(d resourcev1.AllocatedDeviceStatus) deviceKey {
	k := deviceKey{driver: d.Driver, pool: d.Pool, device: d.Device}
	if d.ShareID != nil {
		k.share = *d.ShareID
	}
	return k
}

// onlyNode returns the node that a claim is bound to, "" if it is not one by its name.
func onlyNode(a *resourcev1.AllocationResult) string {
	if a == nil || a.NodeSelector == nil || len(a.NodeSelector.NodeSelectorTerms) != 1 {
		return ""
	}
	term := a.NodeSelector.NodeSelectorTerms[0]
	if len(term.MatchExpressions) != 0 || len(term.MatchFields) != 1 {
		return ""
	}
	if f := term.MatchFields[0]; f.Key == "metadata.name" && f.Operator == "In" && len(f.Values) == 1 {
		return f.Values[0]
	}
	return ""
}
