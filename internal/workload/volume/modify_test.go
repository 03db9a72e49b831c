package volume_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

var attributes = schema.GroupVersionResource{
	Group: "storage.k8s.io", Version: "v1", Resource: "volumeattributesclasses",
}

func attributesClass(name, driver string) *unstructured.Unstructured {
	o := controltest.Object("storage.k8s.io/v1", "VolumeAttributesClass", "", name)
	o.Object["driverName"], o.Object["parameters"] = driver, map[string]any{"iops": "9"}
	return o
}

// TestAttributes checks that a volume gets the VolumeAttributesClass of its claim, also after a change, and waits for a
// missing class.
func TestAttributes(t *testing.T) {
	c := controltest.Start(t, testserver.WithWorkloads())
	wants := func(class string) {
		t.Helper()
		if _, err := c.In(claims, "default").Patch(t.Context(), "data", types.MergePatchType,
			[]byte(`{"spec":{"volumeAttributesClassName":"`+class+`"}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	first := claim("data", "-")
	_ = unstructured.SetNestedField(first.Object, "silver", "spec", "volumeAttributesClassName")
	c.Create(claims, first)
	reported(c, "data", "ProvisioningFailed", `volumeattributesclass.storage.k8s.io "silver" not found`)
	c.Create(attributes, attributesClass("silver", "simulated.bowsprit.dev"))
	bound := phase(c, claims, "data", "Bound")
	if got := field(bound, "status.currentVolumeAttributesClassName"); got != "silver" {
		t.Errorf("its class is %q", got)
	}
	wants("gold")
	reported(c, "data", "VolumeModifyFailed", "VAC gold does not exist.")
	c.When(claims, "default", "it to wait", func(all objects) bool {
		return field(all["data"], "status.modifyVolumeStatus.status") == "Pending"
	})
	c.Create(attributes, attributesClass("gold", "simulated.bowsprit.dev"))
	c.When(claims, "default", "it to have another", func(all objects) bool {
		return field(all["data"], "status.currentVolumeAttributesClassName") == "gold" &&
			field(all["data"], "status.modifyVolumeStatus.status") == ""
	})
	c.When(volumes, "", "its volume to have another", func(all objects) bool {
		return field(all[field(bound, "spec.volumeName")], "spec.volumeAttributesClassName") == "gold"
	})
	reported(c, "data", "VolumeModify", "external resizer is modifying volume data with vac gold")
	reported(c, "data", "VolumeModifySuccessful", "external resizer modified volume data with vac gold successfully")
	c.Create(attributes, attributesClass("foreign", "example.com/other"))
	wants("foreign")
	reported(c, "data", "VolumeModifyFailed", "VAC foreign is for driver example.com/other")
}
