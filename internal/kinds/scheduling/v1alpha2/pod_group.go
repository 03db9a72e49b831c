// Package v1alpha2 holds the Go types of PodGroups and Workloads in scheduling.k8s.io/v1alpha2. Only one minor version
// of k8s.io/api has them, 0.36, and a program may build the server with the next one. Names of types and fields, tags
// and the package's name equal Kubernetes', because decoding errors show them.
package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PodGroup is a group of pods that are scheduled by one policy.
type PodGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt"`
	Spec              PodGroupSpec   `json:"spec" protobuf:"bytes,2,opt"`
	Status            PodGroupStatus `json:"status,omitempty" protobuf:"bytes,3,opt"`
}

// Marshal returns the group's protobuf message.
func (g *PodGroup) Marshal() ([]byte, error) { return marshal(g) }

// Unmarshal reads the group from its protobuf message.
func (g *PodGroup) Unmarshal(data []byte) error { return unmarshal(data, g) }

// OpenAPIModelName is the group's name in OpenAPI documents.
func (PodGroup) OpenAPIModelName() string { return "io.k8s.api.scheduling.v1alpha2.PodGroup" }

// PodGroupSpec is the spec of a group: its template, and its own settings.
type PodGroupSpec struct {
	PodGroupTemplateRef   *PodGroupTemplateReference     `json:"podGroupTemplateRef" protobuf:"bytes,1,opt"`
	SchedulingPolicy      PodGroupSchedulingPolicy       `json:"schedulingPolicy" protobuf:"bytes,2,opt"`
	SchedulingConstraints *PodGroupSchedulingConstraints `json:"schedulingConstraints,omitempty" protobuf:"bytes,3,opt"`
	ResourceClaims        []PodGroupResourceClaim        `json:"resourceClaims,omitempty" patchStrategy:"merge,retainKeys" patchMergeKey:"name" protobuf:"bytes,4,rep"`
	DisruptionMode        *DisruptionMode                `json:"disruptionMode,omitempty" protobuf:"bytes,5,opt"`
	PriorityClassName     string                         `json:"priorityClassName,omitempty" protobuf:"bytes,6,opt"`
	Priority              *int32                         `json:"priority,omitempty" protobuf:"varint,7,opt"`
}

// PodGroupTemplateReference refers to the template of a group.
type PodGroupTemplateReference struct {
	Workload *WorkloadPodGroupTemplateReference `json:"workload" protobuf:"bytes,1,opt"`
}

// WorkloadPodGroupTemplateReference names a template of a Workload.
type WorkloadPodGroupTemplateReference struct {
	WorkloadName         string `json:"workloadName" protobuf:"bytes,1,opt"`
	PodGroupTemplateName string `json:"podGroupTemplateName" protobuf:"bytes,2,opt"`
}

// PodGroupSchedulingPolicy is one of its fields.
type PodGroupSchedulingPolicy struct {
	Basic *BasicSchedulingPolicy `json:"basic,omitempty" protobuf:"bytes,1,opt"`
	Gang  *GangSchedulingPolicy  `json:"gang,omitempty" protobuf:"bytes,2,opt"`
}

// BasicSchedulingPolicy schedules each pod alone.
type BasicSchedulingPolicy struct{}

// GangSchedulingPolicy schedules no pod until so many can be.
type GangSchedulingPolicy struct {
	MinCount int32 `json:"minCount" protobuf:"varint,1,opt"`
}

// PodGroupSchedulingConstraints is where the pods of a group may be.
type PodGroupSchedulingConstraints struct {
	Topology []TopologyConstraint `json:"topology,omitempty" protobuf:"bytes,1,rep"`
}

// TopologyConstraint restricts a group to nodes with one value of a label.
type TopologyConstraint struct {
	Key string `json:"key" protobuf:"bytes,1,opt"`
}

// MaxPodGroupResourceClaims is how many claims a group may have.
const MaxPodGroupResourceClaims = 4

// PodGroupResourceClaim names a claim that the pods of a group share, or its template.
type PodGroupResourceClaim struct {
	Name                      string  `json:"name" protobuf:"bytes,1,opt"`
	ResourceClaimName         *string `json:"resourceClaimName,omitempty" protobuf:"bytes,2,opt"`
	ResourceClaimTemplateName *string `json:"resourceClaimTemplateName,omitempty" protobuf:"bytes,3,opt"`
}

// DisruptionMode is the unit of disruption when a pod is preempted.
type DisruptionMode string

// The modes of disruption.
const (
	DisruptionModePod      DisruptionMode = "Pod"
	DisruptionModePodGroup DisruptionMode = "PodGroup"
)

// PodGroupStatus is how far a group is.
type PodGroupStatus struct {
	Conditions            []metav1.Condition            `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep"`
	ResourceClaimStatuses []PodGroupResourceClaimStatus `json:"resourceClaimStatuses,omitempty" patchStrategy:"merge,retainKeys" patchMergeKey:"name" protobuf:"bytes,2,rep"`
}

// Types of conditions of groups.
const (
	PodGroupScheduled = "PodGroupScheduled"
	DisruptionTarget  = "DisruptionTarget"
)

// PodGroupResourceClaimStatus names the claim that was made of a template.
type PodGroupResourceClaimStatus struct {
	Name              string  `json:"name" protobuf:"bytes,1,opt"`
	ResourceClaimName *string `json:"resourceClaimName,omitempty" protobuf:"bytes,2,opt"`
}
