package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Workload holds the templates of pod groups.
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt"`
	Spec              WorkloadSpec `json:"spec" protobuf:"bytes,2,opt"`
}

// Marshal returns the workload's protobuf message.
func (w *Workload) Marshal() ([]byte, error) { return marshal(w) }

// Unmarshal reads the workload from its protobuf message.
func (w *Workload) Unmarshal(data []byte) error { return unmarshal(data, w) }

// OpenAPIModelName is the workload's name in OpenAPI documents.
func (Workload) OpenAPIModelName() string { return "io.k8s.api.scheduling.v1alpha2.Workload" }

// WorkloadMaxPodGroupTemplates is how many templates a workload may have.
const WorkloadMaxPodGroupTemplates = 8

// WorkloadSpec is the spec of a workload: its controller, and its templates.
type WorkloadSpec struct {
	ControllerRef     *TypedLocalObjectReference `json:"controllerRef,omitempty" protobuf:"bytes,1,opt"`
	PodGroupTemplates []PodGroupTemplate         `json:"podGroupTemplates" protobuf:"bytes,2,rep"`
}

// TypedLocalObjectReference names an object of the workload's namespace.
type TypedLocalObjectReference struct {
	APIGroup string `json:"apiGroup,omitempty" protobuf:"bytes,1,opt"`
	Kind     string `json:"kind" protobuf:"bytes,2,opt"`
	Name     string `json:"name" protobuf:"bytes,3,opt"`
}

// PodGroupTemplate is a named template of a PodGroup. Unlike in a group, SchedulingConstraints are encoded even if
// empty.
type PodGroupTemplate struct {
	Name                  string                         `json:"name" protobuf:"bytes,1,opt"`
	SchedulingPolicy      PodGroupSchedulingPolicy       `json:"schedulingPolicy" protobuf:"bytes,2,opt"`
	SchedulingConstraints *PodGroupSchedulingConstraints `json:"schedulingConstraints" protobuf:"bytes,3,opt"`
	ResourceClaims        []PodGroupResourceClaim        `json:"resourceClaims,omitempty" patchStrategy:"merge,retainKeys" patchMergeKey:"name" protobuf:"bytes,4,rep"`
	DisruptionMode        *DisruptionMode                `json:"disruptionMode,omitempty" protobuf:"bytes,5,opt"`
	PriorityClassName     string                         `json:"priorityClassName,omitempty" protobuf:"bytes,6,opt"`
	Priority              *int32                         `json:"priority,omitempty" protobuf:"varint,7,opt"`
}
