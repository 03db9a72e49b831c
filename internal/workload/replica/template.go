package replica

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/dump"
)

// Hash returns the hash of a template for names and labels, such as "6d4cf56db6". collisions is the number of earlier
// collisions of the hash; nil differs from 0.
func Hash(template *corev1.PodTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%v", dump.ForHash(*template))
	if collisions != nil {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(uint32(*collisions))))
	}
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

// FromTemplate returns a pod made from a template for the object of, with of's name as prefix of its name.
func FromTemplate(template *corev1.PodTemplateSpec, of metav1.Object, controller metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.GetNamespace(), GenerateName: namePrefix(of.GetName()),
			Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: append(slices.Clone(template.OwnerReferences), controller),
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

// namePrefix returns the name with a dash, or without if it could not begin a pod's name then.
func namePrefix(name string) string {
	if name == "" || len(validation.IsDNS1123Subdomain(name[:len(name)-1]+"a")) > 0 {
		return name
	}
	return name + "-"
}
