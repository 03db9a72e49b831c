package quota

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

const deviceClaimCount = "count/resourceclaims.resource.k8s.io"

// devices measures resource claims. Their usage depends on device classes, and, if the scheduler created a claim for
// extended resources, on its pod.
type devices struct {
	view *watchcache.View
	now  func() time.Time
}

func (d devices) evaluator() *evaluator {
	return &evaluator{
		handles: func(a *admit.Attributes) bool {
			return a.Subresource == "" && (a.Operation == admit.Create || a.Operation == admit.Update)
		},
		limits: d.limits, measure: d.measure, changing: true,
		// Kubernetes also counts claims of a missing class, once it evaluates claims at all.
		mayAdd: func(name string) bool {
			return strings.HasPrefix(name, corev1.ResourceImplicitExtendedClaimsPerClass)
		},
	}
}

func (d devices) limits(name string) bool {
	if name == deviceClaimCount || strings.HasSuffix(name, corev1.ResourceClaimsPerClass) {
		return true
	}
	if !extendedName(name) {
		return false
	}
	of := strings.TrimPrefix(name, corev1.DefaultResourceRequestsPrefix)
	if class, ok := strings.CutPrefix(of, resourcev1.ResourceDeviceClassPrefix); ok {
		return d.view.Collection(ref.DeviceClasses.Prefix).Snapshot().Get("", class) != nil
	}
	found := false
	d.view.Collection(ref.DeviceClasses.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		resource, _ := e.Field("spec.extendedResourceName")
		found = resource == of
		return !found
	})
	return found
}

func (d devices) measure(raw []byte) (*measure, error) {
	claim, err := typed[resourcev1.ResourceClaim](raw)
	if err != nil {
		return nil, err
	}
	m := &measure{amounts: amounts{deviceClaimCount: one()}}
	byClass := amounts{}
	for _, r := range claim.Spec.Devices.Requests {
		switch {
		case len(r.FirstAvailable) > 0: // the most that may be allocated, by class
			most := amounts{}
			for _, s := range r.FirstAvailable {
				n, class := number(s.AllocationMode, s.Count), corev1.ResourceName(s.DeviceClassName)
				if have := most[class]; quantity.Cmp(n, have) > 0 {
					most[class] = n
				}
			}
			addTo(byClass, most)
		case r.Exactly != nil:
			class := corev1.ResourceName(r.Exactly.DeviceClassName)
			addTo(byClass, amounts{class: number(r.Exactly.AllocationMode, r.Exactly.Count)})
		}
	}
	extended := amounts{}
	for class, n := range byClass {
		m.amounts[class+corev1.ResourceName(corev1.ResourceClaimsPerClass)] = n
		if class == "" {
			continue
		}
		extended[corev1.ResourceName(corev1.ResourceImplicitExtendedClaimsPerClass)+class] = n
		if name := d.extendedResource(string(class)); name != "" {
			extended[corev1.ResourceName(corev1.DefaultResourceRequestsPrefix+name)] = n
		}
	}
	for name, n := range difference(extended, d.countedByPod(claim)) {
		m.amounts[name] = n
	}
	return m, nil
}

func number(mode resourcev1.DeviceAllocationMode, count int64) resource.Quantity {
	switch mode {
	case resourcev1.DeviceAllocationModeExactCount:
		return *resource.NewQuantity(count, resource.DecimalSI)
	case resourcev1.DeviceAllocationModeAll:
		return *resource.NewQuantity(resourcev1.AllocationResultsMaxSize, resource.DecimalSI)
	}
	return *resource.NewQuantity(0, resource.DecimalSI) // an allocation mode of a newer version
}

// extendedResource returns the extended resource name of a device class, or "" if there is none.
func (d devices) extendedResource(class string) string {
	e := d.view.Collection(ref.DeviceClasses.Prefix).Snapshot().Get("", class)
	if e == nil {
		return ""
	}
	name, _ := e.Field("spec.extendedResourceName")
	return name
}

// countedByPod returns the usage of the pod that a claim was created for, since the pod requests the same devices. It
// is nil for other claims, and for all but the first claim of a pod that does not name its own.
func (d devices) countedByPod(claim *resourcev1.ResourceClaim) amounts {
	uid, name := madeFor(claim)
	if uid == "" {
		return nil
	}
	e := d.view.Collection(ref.Pods.Prefix).Snapshot().Get(claim.Namespace, name)
	if e == nil || e.UID != uid {
		return nil
	}
	pod, err := typed[corev1.Pod](e.JSON())
	if err != nil {
		return nil
	}
	if own := pod.Status.ExtendedResourceClaimStatus; own != nil && own.ResourceClaimName != claim.Name ||
		own == nil && !d.first(claim, uid) {
		return nil
	}
	m, err := measurePod(e.JSON())
	if err != nil {
		return nil
	}
	return m.at(d.now())
}

// madeFor returns the uid and the name of the pod with the extended resources that a claim was created for, "" for
// none.
func madeFor(claim *resourcev1.ResourceClaim) (uid, name string) {
	owner := metav1.GetControllerOfNoCopy(claim)
	if claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" || owner == nil ||
		owner.Kind != "Pod" || owner.APIVersion != "v1" {
		return "", ""
	}
	return string(owner.UID), owner.Name
}

// first reports whether no other claim was created for the pod before this one.
func (d devices) first(claim *resourcev1.ResourceClaim, pod string) bool {
	first := true
	d.view.Collection(ref.ResourceClaims.Prefix).Snapshot().Scan(claim.Namespace, "", func(e *watchcache.Entry) bool {
		other, err := typed[resourcev1.ResourceClaim](e.JSON())
		if err != nil {
			return true
		}
		if uid, _ := madeFor(other); uid != pod {
			return true
		}
		first = cmp.Or(other.CreationTimestamp.Time.Compare(claim.CreationTimestamp.Time),
			strings.Compare(other.Name, claim.Name)) >= 0
		return first
	})
	return first
}
