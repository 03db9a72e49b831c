package batch_test

import (
	"maps"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/testserver"
)

// TestLabelsOfJobs checks that a job with a generated name has the labels of its template as they were sent, and that
// one with a name also gets the labels that the server adds to the template. As in Kubernetes, where the first is a
// copy.
func TestLabelsOfJobs(t *testing.T) {
	client, err := kubernetes.NewForConfig(testserver.Start(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]string{"app": "x"}
	for _, meta := range []metav1.ObjectMeta{{GenerateName: "x-"}, {Name: "x"}} {
		job, err := client.BatchV1().Jobs("default").Create(t.Context(),
			&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: sent},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
				},
			}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if name := job.Spec.Template.Labels[batchv1.JobNameLabel]; name != job.Name {
			t.Errorf("the template of %s says that it is of %q", job.Name, name)
		}
		if named := meta.Name != ""; maps.Equal(job.Labels, sent) == named {
			t.Errorf("labels of %s: %v", job.Name, job.Labels)
		}
	}
}
