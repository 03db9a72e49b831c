package resource

import (
	"context"
	"fmt"
	"strconv"

	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

// poolStatusRequestKind is a request that a controller answers once, in the status.
func poolStatusRequestKind() rule.Kind {
	return rule.Of[resourcev1alpha3.ResourcePoolStatusRequest](rule.Kind{
		Group: resourceV1alpha3, Kind: "ResourcePoolStatusRequest", Plural: "resourcepoolstatusrequests",
		ClusterScoped: true, Status: true, StatusOnly: true, OnDemand: true, ReturnsDeleted: true,
		Strategy: &catalog.Strategy{Cells: rule.Printed(poolStatusRequestCells)},
	})
}

func poolStatusRequestCells(r *resourcev1alpha3.ResourcePoolStatusRequest, e catalog.Env) []any {
	total, available, allocated, unavailable, wrong := "-", "-", "-", "-", "-"
	state, completed, pools := "Pending", rule.None, int32(0)
	if s := r.Status; s != nil {
		var at *metav1.Time
		state, at = stateOf(s.Conditions)
		if at != nil {
			completed = rule.Ago(*at, e)
		}
		pools = rule.Deref(s.PoolCount, 0)
		if state == resourcev1alpha3.ResourcePoolStatusRequestConditionComplete && int(pools) > len(s.Pools) {
			state = fmt.Sprintf("Complete (%d/%d pools)", len(s.Pools), pools)
		}
		if state != resourcev1alpha3.ResourcePoolStatusRequestConditionFailed {
			sum := func(of func(resourcev1alpha3.PoolStatus) *int32) string {
				n := int32(0)
				for _, p := range s.Pools {
					n += rule.Deref(of(p), 0)
				}
				return strconv.Itoa(int(n))
			}
			total = sum(func(p resourcev1alpha3.PoolStatus) *int32 { return p.TotalDevices })
			available = sum(func(p resourcev1alpha3.PoolStatus) *int32 { return p.AvailableDevices })
			allocated = sum(func(p resourcev1alpha3.PoolStatus) *int32 { return p.AllocatedDevices })
			unavailable = sum(func(p resourcev1alpha3.PoolStatus) *int32 { return p.UnavailableDevices })
			wrong = sum(func(p resourcev1alpha3.PoolStatus) *int32 {
				n := int32(0)
				if p.ValidationError != nil {
					n = 1
				}
				return &n
			})
		}
	}
	return []any{r.Name, r.Spec.Driver, total, available, allocated, unavailable, wrong, int64(pools), state, completed}
}

// stateOf returns the state of a request, and the time of its successful completion.
func stateOf(conditions []metav1.Condition) (state string, completed *metav1.Time) {
	for _, c := range conditions {
		if c.Status != metav1.ConditionTrue {
			continue
		}
		switch c.Type {
		case resourcev1alpha3.ResourcePoolStatusRequestConditionComplete:
			return c.Type, &c.LastTransitionTime
		case resourcev1alpha3.ResourcePoolStatusRequestConditionFailed:
			return c.Type, nil
		}
	}
	return "Pending", nil
}

// declared checks a value by a rule that Kubernetes' type declares in its comments.
func declared[T any](
	check func(context.Context, operation.Operation, *field.Path, *T, *T) field.ErrorList, path *field.Path, v *T,
) field.ErrorList {
	return check(context.Background(), operation.Operation{}, path, v, nil)
}

func atLeast[T int32 | int64](path *field.Path, v *T, least T) field.ErrorList {
	return validate.Minimum(context.Background(), operation.Operation{}, path, v, nil, least)
}

// Limits of pools in a status, and of conditions.
const (
	mostPools          = 1000
	mostPoolConditions = 10
)

func validatePoolStatusRequest(r *resourcev1alpha3.ResourcePoolStatusRequest) field.ErrorList {
	path := field.NewPath("spec")
	errs := requiredDriver(path.Child("driver"), r.Spec.Driver)
	if r.Spec.PoolName != nil {
		errs = append(errs, declared(validate.ResourcePoolName[string], path.Child("poolName"), r.Spec.PoolName)...)
	}
	if limit := r.Spec.Limit; limit != nil {
		errs = append(errs, validate.Maximum(context.Background(), operation.Operation{}, path.Child("limit"), limit,
			nil, resourcev1alpha3.ResourcePoolStatusRequestLimitMax)...)
		errs = append(errs, atLeast(path.Child("limit"), limit, 1)...)
	}
	return errs
}

func requiredDriver(path *field.Path, driver string) field.ErrorList {
	if driver == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	//lint:ignore SA1019 kube's rule
	return declared(validate.LongNameCaseless[string], path, &driver)
}

func validatePoolStatusRequestUpdate(
	r, old *resourcev1alpha3.ResourcePoolStatusRequest, _ string,
) (errs field.ErrorList) {
	if !equality.Semantic.DeepEqual(r.Spec, old.Spec) {
		errs = append(errs, field.Invalid(field.NewPath("spec"), nil, "field is immutable"))
	}
	if equality.Semantic.DeepEqual(r.Status, old.Status) {
		return errs
	}
	path := field.NewPath("status")
	if old.Status != nil {
		errs = append(errs, field.Invalid(path, shownStatus(r.Status), "field is immutable"))
	}
	if r.Status == nil {
		return errs
	}
	was := old.Status
	if was == nil {
		was = &resourcev1alpha3.ResourcePoolStatusRequestStatus{}
		errs = append(errs, unversioned.ValidateConditions(r.Status.Conditions, path.Child("conditions"))...)
	}
	return append(errs, validatePoolStatus(r.Status, was, path)...)
}

// shownStatus returns the part of a status that errors show.
func shownStatus(s *resourcev1alpha3.ResourcePoolStatusRequestStatus) any {
	if s == nil {
		return nil
	}
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		return nil
	}
	return rule.GoForm[resourcev1alpha3.ResourcePoolStatusRequestStatus](obj)
}

// validatePoolStatus validates the changes from was.
func validatePoolStatus(
	s, was *resourcev1alpha3.ResourcePoolStatusRequestStatus, path *field.Path,
) (errs field.ErrorList) {
	switch {
	case s.PoolCount == nil:
		errs = append(errs, field.Required(path.Child("poolCount"), ""))
	case was.PoolCount == nil || *was.PoolCount != *s.PoolCount:
		errs = append(errs, atLeast(path.Child("poolCount"), s.PoolCount, 0)...)
	}
	if at := path.Child("pools"); len(s.Pools) > mostPools {
		errs = append(errs, field.TooMany(at, len(s.Pools), mostPools))
	} else if !equality.Semantic.DeepEqual(s.Pools, was.Pools) {
		for i := range s.Pools {
			errs = append(errs, validatePool(&s.Pools[i], at.Index(i))...)
		}
	}
	if at := path.Child("conditions"); len(s.Conditions) > mostPoolConditions {
		errs = append(errs, field.TooMany(at, len(s.Conditions), mostPoolConditions))
	} else if !equality.Semantic.DeepEqual(s.Conditions, was.Conditions) {
		errs = append(errs, uniqueConditions(at, s.Conditions)...)
	}
	return errs
}

func uniqueConditions(path *field.Path, conditions []metav1.Condition) (errs field.ErrorList) {
	seen := map[string]bool{}
	for i, c := range conditions {
		if seen[c.Type] {
			errs = append(errs, field.Duplicate(path.Index(i), c))
		}
		seen[c.Type] = true
	}
	return errs
}

func validatePool(p *resourcev1alpha3.PoolStatus, path *field.Path) field.ErrorList {
	errs := requiredDriver(path.Child("driver"), p.Driver)
	if at := path.Child("poolName"); p.PoolName == "" {
		errs = append(errs, field.Required(at, ""))
	} else {
		errs = append(errs, declared(validate.ResourcePoolName[string], at, &p.PoolName)...)
	}
	if at := path.Child("generation"); p.Generation == 0 {
		errs = append(errs, field.Required(at, ""))
	} else {
		errs = append(errs, atLeast(at, &p.Generation, 0)...)
	}
	for _, n := range []struct {
		name  string
		value *int32
		least int32
	}{
		{"resourceSliceCount", p.ResourceSliceCount, 1}, {"totalDevices", p.TotalDevices, 0},
		{"allocatedDevices", p.AllocatedDevices, 0}, {"availableDevices", p.AvailableDevices, 0},
		{"unavailableDevices", p.UnavailableDevices, 0},
	} {
		if n.value != nil {
			errs = append(errs, atLeast(path.Child(n.name), n.value, n.least)...)
		}
	}
	if p.NodeName != nil {
		errs = append(errs, declared(validate.LongName[string], path.Child("nodeName"), p.NodeName)...)
	}
	if p.ValidationError != nil {
		errs = append(errs, validate.MaxBytes(context.Background(), operation.Operation{},
			path.Child("validationError"), p.ValidationError, nil, 256)...)
	}
	return errs
}

// poolStatusRequestFunctions are the functions that pool_status_request.txt names.
func poolStatusRequestFunctions() rule.Functions {
	return rule.Functions{
		"poolStatusRequest": rule.Typed(validatePoolStatusRequest, validatePoolStatusRequestUpdate),
	}
}
