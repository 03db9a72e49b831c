package control

import (
	"k8s.io/apiserver/pkg/authentication/user"
)

// ControllerUser returns the user of a controller that is part of kube-controller-manager in Kubernetes: a service
// account of kube-system, with its groups. In-process calls are not authorized, so it needs no permissions.
func ControllerUser(name string) user.Info {
	return &user.DefaultInfo{
		Name:   "system:serviceaccount:kube-system:" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", user.AllAuthenticated},
	}
}
