-- The datagrams of the probe: a head of 40 octets, then the user's octets or packed envelopes of URP. Their keys are not
-- known here, so that tags are shown and not verified.

local NAME = "trunkline_probe"
if package.loaded[NAME] then return package.loaded[NAME] end

local layout = require "trunkline_layout"
local urp = require "trunkline_urp"
local probe = Proto("tlprobe", "Trunkline Probe")

-- Octets of the head, and its version.
local HEAD_OCTETS, VERSION = 40, 2
local REQUEST, REPLY, DATA, URP = 1, 2, 3, 4
local KINDS = { [REQUEST] = "REQUEST", [REPLY] = "REPLY", [DATA] = "DATA", [URP] = "URP" }
local NS = layout.NANOSECONDS
local UNITS = base.UNIT_STRING

local fields = layout.fields(probe, "tlprobe", {
    { "cookie", "uint64", "Cookie of the session", base.HEX },
    { "tag", "uint64", "Tag (keyed BLAKE3)", base.HEX },
    { "kind", "uint8", "Kind", base.DEC, KINDS },
    { "version", "uint8", "Version", base.DEC },
    { "flow", "uint16", "Flow", base.DEC },
    { "number", "uint32", "Number", base.DEC },
    { "stamp", "uint64", "Stamp", base.DEC + UNITS, NS },
    { "span", "uint32", "Time at the server", base.DEC + UNITS, NS },
    { "order", "uint32", "Order of arrival", base.DEC },
    { "data", "bytes", "Data" },
})

local HEAD = {
    { "cookie", 8 }, { "tag", 8 }, { "kind", 1 }, { "version", 1 }, { "flow", 2 }, { "number", 4 }, { "stamp", 8 },
    { "span", 4 }, { "order", 4 },
}

local function is_datagram(tvb)
    return tvb:len() >= HEAD_OCTETS and KINDS[tvb(16, 1):uint()] ~= nil and tvb(17, 1):uint() == VERSION
end

-- Adds a datagram to `tree`. Returns the octets that it takes; 0 if it is none.
local function dissect(tvb, pinfo, parent)
    if not is_datagram(tvb) then return 0 end
    local tree = parent:add(probe, tvb(0, HEAD_OCTETS))
    local head = layout.reader(tvb, 0, HEAD_OCTETS, tree):read(fields, HEAD)
    local summary = string.format("%s %d, flow %d", KINDS[head.kind], head.number, head.flow)
    tree:append_text(", " .. summary)
    pinfo.cols.protocol = "TLPROBE"
    local rest = tvb:len() > HEAD_OCTETS and tvb(HEAD_OCTETS)
    local is_whole = tvb:reported_len() == tvb:len()
    if rest and head.kind == URP and is_whole then
        summary = summary .. ", " .. urp.dissect(rest:tvb(), parent)
    elseif rest then
        tree:add(fields.data, rest)
    end
    pinfo.cols.info = summary
    return tvb:len()
end

local module = { dissect = dissect }
package.loaded[NAME] = module
return module
