package control

import (
	"k8s.io/apiserver/pkg/authentication/user"
)

// ControllerUser is the user that a controller acts as which Kubernetes has in kube-controller-manager: a service
// account of kube-system, in the groups of one. What acts in process is not authorized, so the groups need not allow it
// anything.
func ControllerUser(name string) user.Info {
	return &user.DefaultInfo{
		Name:   "system:serviceaccount:kube-system:" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", user.AllAuthenticated},
	}
}
