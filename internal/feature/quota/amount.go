package quota

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// amounts are quantities by their names in quotas.
type amounts = corev1.ResourceList

// one is the count of a single object.
func one() resource.Quantity { return *resource.NewQuantity(1, resource.DecimalSI) }

// addTo adds list to sum.
func addTo(sum, list amounts) {
	for name, q := range list {
		total := sum[name].DeepCopy()
		quantity.Add(&total, q)
		sum[name] = total
	}
}

// difference returns the positive part of a minus b.
func difference(a, b amounts) amounts {
	out := amounts{}
	for name, q := range a {
		more := q.DeepCopy()
		quantity.Sub(&more, b[name])
		if more.Sign() > 0 {
			out[name] = more
		}
	}
	return out
}

// masked returns the entries of list with the given names.
func masked(list amounts, names []corev1.ResourceName) amounts {
	out := amounts{}
	for _, name := range names {
		if q, ok := list[name]; ok {
			out[name] = q
		}
	}
	return out
}

// nonZero returns list without zeros.
func nonZero(list amounts) amounts {
	out := amounts{}
	for name, q := range list {
		if !q.IsZero() {
			out[name] = q
		}
	}
	return out
}

func sortedNames(list amounts) []corev1.ResourceName { return slices.Sorted(maps.Keys(list)) }

// printAmounts words amounts as kube does: "cpu=1,memory=1Gi".
func printAmounts(list amounts) string {
	var parts []string
	for _, name := range sortedNames(list) {
		q := list[name]
		parts = append(parts, string(name)+"="+q.String())
	}
	return strings.Join(parts, ",")
}

// printNames words names as kube does: "cpu,memory".
func printNames(names []corev1.ResourceName) string {
	var parts []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		parts = append(parts, string(name))
	}
	return strings.Join(parts, ",")
}
