// Command dra is four drivers of dynamic resources for the tests: of GPUs with their slices, of CPUs, of groups of CPUs,
// and of cards that are divided when a claim has a part. Its devices are names, and a container that gets one has a
// variable for it. What they must never do they refuse: prepare one device, one CPU of a group, or one slot of a card
// for two claims at once.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
	"k8s.io/utils/cpuset"
)

const kubelet = "/var/lib/kubelet"

// driver knows which claim holds a device: one file per device, with the claim's UID, outlives a restart. Of groups the
// claims hold CPUs, of cards slots.
type driver struct {
	name     string
	node     string
	things   []thing
	parts    []thing
	prepared string
}

func main() {
	config := flag.String("kubeconfig", "", "as which client the API server is asked")
	node := flag.String("node", "", "the node that has the devices")
	whole := flag.Int("gpus", 4, "how many whole GPUs")
	profiles := flag.String("slices", "", "the profiles of the slices of one more GPU")
	cores := flag.Int("cpus", 0, "how many CPUs")
	cards := flag.Int("cards", 0, "how many cards that are divided when a claim has a part")
	cdi := flag.String("cdi", "/run/cdi", "where the container runtime looks for devices")
	klog.InitFlags(nil)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	devices, each, divided := gpus(*node, *whole, words(*profiles)), cpus(*node, *cores), parts(*node, *cards)
	drivers := []*driver{
		{name: gpuDriver, node: *node, things: devices, parts: devices},
		{name: cpuDriver, node: *node, things: each, parts: each},
		{name: groupDriver, node: *node, things: groups(*cores), parts: each},
		{name: cardDriver, node: *node, things: divided, parts: divided},
	}
	if err := run(ctx, *config, *cdi, drivers); err != nil {
		klog.ErrorS(err, "the drivers end")
		os.Exit(1)
	}
}

func run(ctx context.Context, config, cdi string, drivers []*driver) error {
	rest, err := clientcmd.BuildConfigFromFlags("", config)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return err
	}
	failures := make(chan error, len(drivers))
	for _, one := range drivers {
		// One after the other they would keep the cluster waiting.
		go func() { failures <- one.serve(ctx, client, cdi) }()
	}
	return <-failures
}

func (d *driver) serve(ctx context.Context, client kubernetes.Interface, cdi string) error {
	data := filepath.Join(kubelet, "plugins", d.name)
	d.prepared = filepath.Join(data, "prepared")
	if err := errors.Join(os.MkdirAll(d.prepared, 0o750), os.MkdirAll(cdi, 0o755), d.writeCDI(cdi)); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, d,
		kubeletplugin.KubeClient(client),
		kubeletplugin.NodeName(d.node),
		kubeletplugin.DriverName(d.name),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(kubelet, "plugins_registry")),
		kubeletplugin.PluginDataDirectoryPath(data),
	)
	if err != nil {
		return err
	}
	defer helper.Stop()
	if err := helper.PublishResources(ctx, d.resources()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// resources are one pool with the node's name; counters that devices share are in a slice of their own.
func (d *driver) resources() resourceslice.DriverResources {
	var devices []resourceapi.Device
	for _, one := range d.things {
		devices = append(devices, one.device())
	}
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: devices}}}
	if shared := counterSets(d.things); len(shared) > 0 {
		pool.Slices = append(pool.Slices, resourceslice.Slice{SharedCounters: shared})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.node: pool}}
}

func (d *driver) cdiKind() string { return "local-cluster/" + d.name }

// writeCDI says once for all what a container with a device gets.
func (d *driver) writeCDI(folder string) error {
	type edits struct {
		Env []string `json:"env"`
	}
	type device struct {
		Name  string `json:"name"`
		Edits edits  `json:"containerEdits"`
	}
	var devices []device
	for _, one := range d.parts {
		devices = append(devices, device{Name: one.name, Edits: edits{Env: []string{one.variable}}})
	}
	if len(devices) == 0 {
		return nil
	}
	text, err := json.Marshal(map[string]any{"cdiVersion": "0.6.0", "kind": d.cdiKind(), "devices": devices})
	if err != nil {
		return err
	}
	fresh := filepath.Join(folder, d.name+".new")
	if err := os.WriteFile(fresh, text, 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(folder, d.name+".json"))
}

// PrepareResourceClaims lets containers have what was allocated; asked again, it answers the same.
func (d *driver) PrepareResourceClaims(
	_ context.Context, claims []*resourceapi.ResourceClaim,
) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := make(map[types.UID]kubeletplugin.PrepareResult)
	for _, claim := range claims {
		devices, err := d.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return results, nil
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	if claim.Status.Allocation == nil {
		return nil, fmt.Errorf("claim %s/%s is not allocated", claim.Namespace, claim.Name)
	}
	var devices []kubeletplugin.Device
	for _, given := range claim.Status.Allocation.Devices.Results {
		if given.Driver != d.name || given.Pool != d.node {
			continue
		}
		parts, err := d.chosen(claim, given)
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, part := range parts {
			if err := d.hold(part, given, claim.UID); err != nil {
				return nil, err
			}
			ids = append(ids, d.cdiKind()+"="+part)
		}
		devices = append(devices, kubeletplugin.Device{
			Requests:     []string{given.Request},
			PoolName:     given.Pool,
			DeviceName:   given.Device,
			ShareID:      given.ShareID,
			CDIDeviceIDs: ids,
		})
	}
	klog.InfoS("prepared", "claim", klog.KObj(claim), "uid", claim.UID, "devices", len(devices))
	return devices, nil
}

// chosen is the device itself, or the CPUs of a group that the claim's parameters name: as many as it consumes.
func (d *driver) chosen(
	claim *resourceapi.ResourceClaim, given resourceapi.DeviceRequestAllocationResult,
) ([]string, error) {
	amount, shared := given.ConsumedCapacity[capacity]
	if !shared {
		return []string{given.Device}, nil
	}
	if given.ShareID == nil {
		return nil, fmt.Errorf("the share of %q has no id", given.Device)
	}
	cpus, err := told(claim.Status.Allocation.Devices.Config, given)
	if err != nil {
		return nil, err
	}
	for _, group := range d.things {
		if group.name == given.Device && cpus.IsSubsetOf(group.cpus) && int64(cpus.Size()) == amount.Value() {
			var names []string
			for _, cpu := range cpus.List() {
				names = append(names, fmt.Sprintf("cpu-%d", cpu))
			}
			return names, nil
		}
	}
	return nil, fmt.Errorf("CPUs %s are not %s of %q", cpus, amount.String(), given.Device)
}

// told are the CPUs in the only parameters for this request.
func told(
	configs []resourceapi.DeviceAllocationConfiguration, given resourceapi.DeviceRequestAllocationResult,
) (cpuset.CPUSet, error) {
	var found []cpuset.CPUSet
	for _, config := range configs {
		mine := config.Opaque != nil && config.Opaque.Driver == given.Driver && slices.Contains(config.Requests, given.Request)
		if !mine || config.Source != resourceapi.AllocationConfigSourceClaim {
			continue
		}
		var parameters struct {
			CPUConfig struct {
				CPUSet string `json:"cpuset"`
			} `json:"cpuConfig"`
		}
		if err := json.Unmarshal(config.Opaque.Parameters.Raw, &parameters); err != nil {
			return cpuset.New(), err
		}
		cpus, err := cpuset.Parse(parameters.CPUConfig.CPUSet)
		if err != nil {
			return cpuset.New(), err
		}
		found = append(found, cpus)
	}
	if len(found) != 1 {
		return cpuset.New(), fmt.Errorf("request %q has %d parameters with CPUs", given.Request, len(found))
	}
	return found[0], nil
}

// hold notes a device, or a part of one, as the claim's. With admin access it is looked at only, and held by no claim.
func (d *driver) hold(part string, given resourceapi.DeviceRequestAllocationResult, claim types.UID) error {
	if given.AdminAccess != nil && *given.AdminAccess {
		return nil
	}
	for _, one := range d.parts {
		if part == one.name {
			for _, held := range one.holds() {
				if err := d.note(held, claim); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return fmt.Errorf("there is no device %q", part)
}

func (d *driver) note(device string, claim types.UID) error {
	file := filepath.Join(d.prepared, device)
	holder, err := os.ReadFile(file)
	if err == nil && len(holder) > 0 && types.UID(holder) != claim {
		return fmt.Errorf("%s is prepared for claim %s", device, holder)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(file, []byte(claim), 0o640)
}

// UnprepareResourceClaims gives back what a claim held; nothing to give back is no error.
func (d *driver) UnprepareResourceClaims(
	_ context.Context, claims []kubeletplugin.NamespacedObject,
) (map[types.UID]error, error) {
	results := make(map[types.UID]error)
	for _, claim := range claims {
		results[claim.UID] = d.release(claim.UID)
		klog.InfoS("unprepared", "claim", claim.NamespacedName, "uid", claim.UID)
	}
	return results, nil
}

func (d *driver) release(claim types.UID) error {
	var failures []error
	for _, one := range d.parts {
		for _, held := range one.holds() {
			file := filepath.Join(d.prepared, held)
			if holder, err := os.ReadFile(file); err == nil && types.UID(holder) == claim {
				failures = append(failures, os.Remove(file))
			}
		}
	}
	return errors.Join(failures...)
}

// HandleError is told of what fails in the background; publishing is tried again by the helper.
func (d *driver) HandleError(_ context.Context, err error, message string) {
	klog.ErrorS(err, message)
}
