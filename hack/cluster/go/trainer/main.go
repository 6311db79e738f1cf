// Command trainer runs the controllers of TrainJobs and their runtimes, without the webhooks, which only validate: the
// command that the module publishes makes certificates for a Service in the cluster first.
package main

import (
	"flag"
	"os"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/controller"
	"github.com/kubeflow/trainer/v2/pkg/runtime/core"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	options "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	podgroups "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
)

func main() {
	probes := flag.String("health-probe-bind-address", "0", "where it says that it is ready")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	known := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{
		scheme.AddToScheme, trainer.AddToScheme, jobset.AddToScheme, podgroups.AddToScheme,
	} {
		utilruntime.Must(add(known))
	}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 known,
		Client:                 client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: *probes,
	})
	check(err)
	check(manager.AddReadyzCheck("ready", healthz.Ping))
	ctx := ctrl.SetupSignalHandler()
	runtimes, err := core.New(ctx, manager.GetClient(), manager.GetFieldIndexer())
	check(err)
	_, err = controller.SetupControllers(manager, runtimes, options.Options{})
	check(err)
	check(manager.Start(ctx))
}

func check(err error) {
	if err != nil {
		ctrl.Log.Error(err, "the controllers of TrainJobs end")
		os.Exit(1)
	}
}
