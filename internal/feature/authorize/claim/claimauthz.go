// Package claim authorizes writes to the parts of a ResourceClaim's status.
//
// The permission for resourceclaims/status is not sufficient (KEP-4817, Kubernetes' feature gate
// DRAResourceClaimGranularStatusAuthorization). Changes of allocation and reservedFor also require a permission for
// resourceclaims/binding, as schedulers have. Changes of devices also require one for resourceclaims/driver with the
// driver's name, with a verb that depends on the node. Neither subresource is served.
//
// It runs beside the validation of an update, as a limit of the verbs (verb.Limit). Source of rules and texts:
// k8s.io/kubernetes/pkg/registry/resource. It is safe for concurrent use.
package claim

import (
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
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

// Limit returns a limit that asks the authorizer a.
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
		if w.now.Allocation != nil { // without an allocation, the devices go with it
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

// binding checks changes of the claim's allocation and consumers. The permission covers all claims.
func (w *write) binding() field.ErrorList {
	if quantity.Semantic.DeepEqual(w.now.Allocation, w.was.Allocation) &&
		quantity.Semantic.DeepEqual(w.now.ReservedFor, w.was.ReservedFor) {
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

// devices checks changes of the device statuses of a driver.
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

// driver returns nil if one of the verbs is allowed, else the error for the first verb.
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
	info := &request.Info{
		IsResource: true, Verb: verb, APIPrefix: "apis", Group: resourcev1.GroupName, Version: w.call.Version.Name,
		Resource: "resourceclaims", Subresource: subresource, Namespace: namespace, Name: name,
	}
	decision, err := w.authorizer.Authorize(w.ctx, w.call.User, info)
	reason := decision.Reason
	switch {
	case decision.Allowed():
		return nil
	case err != nil && reason != "":
		reason = fmt.Sprintf("%v: %s", err, reason)
	case err != nil:
		reason = err.Error()
	}
	return authz.Forbidden(w.call.User, info, reason)
}

type deviceKey struct{ driver, pool, device, share string }

// changedDrivers returns the sorted drivers of the devices with a changed status.
func changedDrivers(now, was []resourcev1.AllocatedDeviceStatus) (drivers []string) {
	before := map[deviceKey]resourcev1.AllocatedDeviceStatus{}
	for _, d := range was {
		before[keyOf(d)] = d
	}
	for _, d := range now {
		old, known := before[keyOf(d)]
		delete(before, keyOf(d))
		if !known || !quantity.Semantic.DeepEqual(old, d) {
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

// onlyNode returns the node that a claim is bound to by name, or "" if there is none.
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
