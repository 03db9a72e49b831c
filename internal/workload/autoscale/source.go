package autoscale

import (
	"errors"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/measure"
)

// finding is the result of a metric.
type finding struct {
	replicas int32
	name     string
	status   autoscalingv2.MetricStatus
}

// failure is the error of a metric: the reason for the condition and the event, the error, and the prefix of the
// autoscaler's error text.
type failure struct {
	reason string
	why    error
	head   string
}

func (f *failure) Error() string { return f.head + f.why.Error() }

func (f *failure) Unwrap() error { return f.why }

// The errors of metrics clients on a server without such metrics.
var (
	errNoCustom = errors.New("unable to fetch metrics from custom metrics API: " +
		"no custom metrics API (custom.metrics.k8s.io) registered")
	noExternal = "unable to fetch metrics from external metrics API: " +
		"the server could not find the requested resource (get %s.external.metrics.k8s.io)"
)

// read evaluates a metric.
func (l *look) read(
	spec *autoscalingv2.MetricSpec, target *autoscalingv1.Scale, selector labels.Selector,
) (*finding, *failure) {
	switch {
	case spec.Type == autoscalingv2.ResourceMetricSourceType && spec.Resource != nil:
		m := spec.Resource
		found, value, err := l.resource(m.Name, "", m.Target, target, selector)
		if err != nil {
			return nil, &failure{"FailedGetResourceMetric", err, fmt.Sprintf("failed to get %s resource metric value: ",
				m.Name)}
		}
		found.status = autoscalingv2.MetricStatus{
			Type:     spec.Type,
			Resource: &autoscalingv2.ResourceMetricStatus{Name: m.Name, Current: *value},
		}
		return found, nil
	case spec.Type == autoscalingv2.ContainerResourceMetricSourceType && spec.ContainerResource != nil:
		m := spec.ContainerResource
		found, value, err := l.resource(m.Name, m.Container, m.Target, target, selector)
		if err != nil {
			return nil, &failure{"FailedGetContainerResourceMetric", err,
				fmt.Sprintf("failed to get %s container metric value: ", m.Container)}
		}
		found.status = autoscalingv2.MetricStatus{
			Type: spec.Type,
			ContainerResource: &autoscalingv2.ContainerResourceMetricStatus{
				Name: m.Name, Container: m.Container, Current: *value,
			},
		}
		return found, nil
	case spec.Type == autoscalingv2.ObjectMetricSourceType && spec.Object != nil:
		return nil, l.object(spec.Object)
	case spec.Type == autoscalingv2.PodsMetricSourceType && spec.Pods != nil:
		_, err := metav1.LabelSelectorAsSelector(spec.Pods.Metric.Selector)
		if err == nil {
			err = fmt.Errorf("unable to get metric %s: %w", spec.Pods.Metric.Name, errNoCustom)
		}
		return nil, &failure{"FailedGetPodsMetric", err, "failed to get pods metric value: "}
	case spec.Type == autoscalingv2.ExternalMetricSourceType && spec.External != nil:
		return nil, l.external(spec.External)
	}
	return nil, &failure{reason: "InvalidMetricSourceType",
		why: fmt.Errorf("unknown metric source type %q", string(spec.Type))}
}

// resource evaluates the usage of a resource, of one container of each pod or, with "", of all containers.
func (l *look) resource(
	name corev1.ResourceName, container string, to autoscalingv2.MetricTarget, target *autoscalingv1.Scale,
	selector labels.Selector,
) (*finding, *autoscalingv2.MetricValueStatus, error) {
	w := workload{
		pods:     cluster.Pods.Selected(l.index, l.hpa.Namespace, selector),
		resource: name, container: container, replicas: target.Spec.Replicas,
		tolerance: toleranceOf(&l.hpa.Spec), now: l.now,
	}
	kind := "utilization"
	if to.AverageValue != nil {
		kind = "usage"
	} else if to.AverageUtilization == nil {
		return nil, nil, errors.New("invalid resource metric source: neither an average utilization target nor an " +
			"average value (usage) target was set")
	}
	measured := false
	w.usage = map[string]int64{}
	for _, p := range w.pods {
		if !l.IsMeasured(p.Spec.NodeName) {
			continue
		}
		all := measure.OfPod(p)
		measured = measured || len(all) > 0
		if v, ok := used(all, name, container); ok {
			w.usage[p.Name] = v
		}
	}
	if !measured {
		return nil, nil, fmt.Errorf("failed to get %s %s: unable to get metrics for resource %s: "+
			"no metrics returned from resource metrics API", name, kind, name)
	}
	if to.AverageValue != nil {
		replicas, each, err := w.byValue(to.AverageValue.MilliValue())
		if err != nil {
			return nil, nil, fmt.Errorf("failed to get %s usage: %w", name, err)
		}
		return &finding{replicas: replicas, name: fmt.Sprintf("%s resource", name)},
			&autoscalingv2.MetricValueStatus{AverageValue: quantity(name, each)}, nil
	}
	replicas, percent, each, err := w.byUtilization(*to.AverageUtilization)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to get %s utilization: %w", name, err)
	}
	source := "resource"
	if container != "" {
		source = "container resource"
	}
	return &finding{replicas: replicas, name: fmt.Sprintf("%s %s utilization (percentage of request)", name, source)},
		&autoscalingv2.MetricValueStatus{AverageUtilization: &percent, AverageValue: quantity(name, each)}, nil
}

// used returns the thousandths of a resource that a container uses, or with "" all containers; false if unknown.
func used(all []measure.Container, name corev1.ResourceName, container string) (milli int64, ok bool) {
	for _, one := range all {
		if container != "" && one.Name != container {
			continue
		}
		q, known := one.Usage[name]
		if !known {
			return 0, false
		}
		milli, ok = milli+q.MilliValue(), true
	}
	return milli, ok
}

func quantity(name corev1.ResourceName, milli int64) *resource.Quantity {
	if name == corev1.ResourceMemory {
		return resource.NewMilliQuantity(milli, resource.BinarySI)
	}
	return resource.NewMilliQuantity(milli, resource.DecimalSI)
}

// object returns the error of an object metric: no server provides such metrics.
func (l *look) object(m *autoscalingv2.ObjectMetricSource) *failure {
	f := &failure{reason: "FailedGetObjectMetric", head: "failed to get object metric value: "}
	if _, f.why = metav1.LabelSelectorAsSelector(m.Metric.Selector); f.why != nil {
		return f
	}
	average := m.Target.Type == autoscalingv2.AverageValueMetricType && m.Target.AverageValue != nil
	if !average && (m.Target.Type != autoscalingv2.ValueMetricType || m.Target.Value == nil) {
		f.why = errors.New("invalid object metric source: neither a value target nor an average value target was set")
		return f
	}
	of := m.DescribedObject
	f.why = fmt.Errorf("unable to get metric %s on %v %s/%s: %w", m.Metric.Name, of.Kind, l.hpa.Namespace, of.Name,
		errNoCustom)
	if average {
		f.head += fmt.Sprintf("failed to get %s object metric: ", m.Metric.Name)
	}
	return f
}

// external returns the error of an external metric.
func (l *look) external(m *autoscalingv2.ExternalMetricSource) *failure {
	name := m.Metric.Name
	f := &failure{reason: "FailedGetExternalMetric"}
	f.head = fmt.Sprintf("failed to get %s external metric value: ", name)
	switch {
	case m.Target.AverageValue != nil:
		f.head += fmt.Sprintf("failed to get %s external metric: ", name)
	case m.Target.Value != nil:
		f.head += fmt.Sprintf("failed to get external metric %s: ", name)
	default:
		f.why = errors.New("invalid external metric source: neither a value target nor an average value target was set")
		return f
	}
	if _, f.why = metav1.LabelSelectorAsSelector(m.Metric.Selector); f.why == nil {
		f.why = fmt.Errorf("unable to get external metric %s/%s/%+v: "+noExternal, l.hpa.Namespace, name,
			m.Metric.Selector, name)
	}
	return f
}
