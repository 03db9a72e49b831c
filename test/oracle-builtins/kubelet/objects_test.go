package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/secret"
)

// objects are the ConfigMaps and Secrets of a namespace. They implement the kubelet's manager of ConfigMaps.
type objects struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
}

func (o *objects) GetConfigMap(_, name string) (*corev1.ConfigMap, error) {
	if c := o.configMaps[name]; c != nil {
		return c, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("configmap"), name)
}

func (o *objects) GetSecret(_, name string) (*corev1.Secret, error) {
	if s := o.secrets[name]; s != nil {
		return s, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secret"), name)
}

func (*objects) RegisterPod(*corev1.Pod)   {}
func (*objects) UnregisterPod(*corev1.Pod) {}

// secretManager is the kubelet's manager of Secrets.
type secretManager struct{ *objects }

// mount reports whether the volumes of a pod can be mounted.
func (o *objects) mount(pod *corev1.Pod) bool {
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.ConfigMap != nil:
			optional := v.ConfigMap.Optional != nil && *v.ConfigMap.Optional
			c, err := o.GetConfigMap(pod.Namespace, v.ConfigMap.Name)
			if err != nil && optional {
				c, err = &corev1.ConfigMap{}, nil
			}
			if err == nil {
				_, err = configmap.MakePayload(v.ConfigMap.Items, c, v.ConfigMap.DefaultMode, nil, optional)
			}
			if err != nil {
				return false
			}
		case v.Secret != nil:
			optional := v.Secret.Optional != nil && *v.Secret.Optional
			s, err := o.GetSecret(pod.Namespace, v.Secret.SecretName)
			if err != nil && optional {
				s, err = &corev1.Secret{}, nil
			}
			if err == nil {
				_, err = secret.MakePayload(v.Secret.Items, s, v.Secret.DefaultMode, nil, optional)
			}
			if err != nil {
				return false
			}
		}
	}
	return true
}

// services lists no services.
type services struct{}

func (services) List(labels.Selector) ([]*corev1.Service, error)    { return nil, nil }
func (services) Services(string) corelisters.ServiceNamespaceLister { return nil }
