-- A frame of a listed transport between two ends of the laboratory: two octets that tell how long the transport's header
-- is, eight with the place of the data in the stream, the header, the data. The headers are those of stop-and-wait,
-- go-back-n and selective-repeat, which are one, and of NETBLT.

local NAME = "trunkline_frame"
if package.loaded[NAME] then return package.loaded[NAME] end

local layout = require "trunkline_layout"
local netblt = require "trunkline_netblt"
local frame = Proto("tlframe", "Trunkline Frame")
local arq = Proto("tlarq", "Trunkline Repeat Request (stop-and-wait, go-back-n, selective-repeat)")

-- Octets in front of a frame, and of the header of the repeat-request transports.
local PREFIX, ARQ_HEADER = 10, 8
local DATA, ANSWER = 1, 2
local KINDS = { [DATA] = "DATA", [ANSWER] = "ANSWER" }

local fields = layout.fields(frame, "tlframe", {
    { "header_length", "uint16", "Header Length (octets)", base.DEC },
    { "place", "uint64", "Place in the stream (octets)", base.DEC },
    { "header", "bytes", "Header" },
    { "data", "bytes", "Data" },
})

local arq_fields = layout.fields(arq, "tlarq", {
    { "kind", "uint8", "Kind", base.DEC, KINDS },
    { "flags", "uint8", "Flags", base.HEX },
    { "sending", "uint8", "Sent before (modulo 128)", base.DEC, nil, 0xfe },
    { "message_end", "bool", "A message ends", 8, nil, 0x01 },
    { "octets", "uint16", "Data (octets)", base.DEC },
    { "number", "uint32", "Number", base.DEC },
})

local ARQ = { { "kind", 1 }, { "flags", 1, { "sending", "message_end" } }, { "octets", 2 }, { "number", 4 } }

-- Whether the octets at `at` are a header of the repeat-request transports in front of `count` octets of data.
local function is_arq(tvb, at, count)
    local kind, flags, octets = tvb(at, 1):uint(), tvb(at + 1, 1):uint(), tvb(at + 2, 2):uint()
    if kind == DATA then return octets == count end
    return kind == ANSWER and octets == 0 and count == 0 and flags % 2 == 0
end

local function dissect_arq(tvb, parent)
    local tree = parent:add(arq, tvb(0, ARQ_HEADER))
    local values = layout.reader(tvb, 0, ARQ_HEADER, tree):read(arq_fields, ARQ)
    local name = KINDS[values.kind]
    tree:append_text(string.format(", %s, number %d", name, values.number))
    local octets = values.kind == DATA and string.format(", %d octets", values.octets) or ""
    local again = math.floor(values.flags / 2)
    return string.format("%s %d%s%s", name, values.number, octets, again > 0 and ", sent again" or "")
end

-- The length of the header of the frame in `tvb`, which counts `size` octets on the path, and the transport, "FRAME" if
-- it is not known; nil if it is no frame. A datagram has fewer octets than it counts on the path, a frame more.
local function recognise(tvb, size)
    if tvb:len() < PREFIX + ARQ_HEADER then return nil end
    local header = tvb(0, 2):uint()
    if header > size or tvb:len() - PREFIX > size then return nil end
    if header == ARQ_HEADER and is_arq(tvb, PREFIX, size - header) then return header, "ARQ" end
    if netblt.recognise(tvb(PREFIX):tvb()) == header then return header, "NETBLT" end
    if header > 0 and tvb:len() == PREFIX + size then return header, "FRAME" end
    return nil
end

-- Adds the header of a transport that is not known. Returns a summary.
local function dissect_unknown(packet, tree, header)
    tree:add(fields.header, packet(0, header))
    return string.format("header of %d octets", header)
end

-- Adds a frame that was recognised to `tree`. Returns the name of its transport and a summary.
local function dissect(tvb, pinfo, parent, header, name)
    local tree = parent:add(frame, tvb(0, PREFIX))
    layout.reader(tvb, 0, PREFIX, tree):read(fields, { { "header_length", 2 }, { "place", 8 } })
    local packet = tvb(PREFIX):tvb()
    if name == "NETBLT" then
        local summary = netblt.dissect(packet, pinfo, parent, true)
        return name, summary
    end
    local summary = name == "ARQ" and dissect_arq(packet, parent) or dissect_unknown(packet, tree, header)
    if packet:len() > header then parent:add(fields.data, packet(header)) end
    return name, summary
end

local module = { recognise = recognise, dissect = dissect }
package.loaded[NAME] = module
return module
