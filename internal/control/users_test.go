package control

import (
	"reflect"
	"testing"
)

// TestControllerUser checks that controllers are service accounts like kube-controller-manager's, not administrators.
func TestControllerUser(t *testing.T) {
	u := ControllerUser("generic-garbage-collector")
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}
	if u.GetName() != "system:serviceaccount:kube-system:generic-garbage-collector" ||
		!reflect.DeepEqual(u.GetGroups(), groups) {
		t.Errorf("%+v", u)
	}
}
