package quantity

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Semantic is equality.Semantic with Cmp for quantities.
var Semantic = conversion.EqualitiesOrDie(
	func(a, b resource.Quantity) bool { return Cmp(a, b) == 0 },
	func(a, b metav1.MicroTime) bool { return a.Equal(&b) },
	func(a, b metav1.Time) bool { return a.Equal(&b) },
	func(a, b labels.Selector) bool { return a.String() == b.String() },
	func(a, b fields.Selector) bool { return a.String() == b.String() },
)
